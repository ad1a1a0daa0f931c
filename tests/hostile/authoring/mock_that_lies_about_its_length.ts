/**
 * Mocks whose headers say another length and another encoding than their body has.
 *
 * status: steps
 * tools: 1
 * permissions: {"net": ["api.example.com"]}
 * examples: [
 *   {"description": "Too short", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}, "response": {"headers": {"content-length": "5"}, "body": "a text of 23 characters"}}], "output": 23},
 *   {"description": "Too long", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}, "response": {"headers": {"content-length": "999999999999"}, "body": "a text of 23 characters"}}], "output": 23},
 *   {"description": "Not compressed", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}, "response": {"headers": {"content-encoding": "gzip"}, "body": "a text of 23 characters"}}], "output": 23}]
 * steps: [
 *   {"create": {}, "expect": {"status": "created", "draft": false}}
 *   ]
 */
export async function execute(): Promise<number> {
  const response = await fetch("https://api.example.com/");
  return (await response.text()).length;
}
