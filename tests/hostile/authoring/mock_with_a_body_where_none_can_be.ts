/**
 * Mocks of responses that cannot have a body, with one.
 *
 * status: steps
 * tools: 1
 * permissions: {"net": ["api.example.com"]}
 * examples: [
 *   {"description": "204", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}, "response": {"status": 204, "body": "a body"}}], "output": {"$type": "string"}},
 *   {"description": "304", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}, "response": {"status": 304, "body": "a body"}}], "output": {"$type": "string"}}]
 * steps: [
 *   {"create": {}, "expect": {"status": "created", "draft": false}}
 *   ]
 */
export async function execute(): Promise<string> {
  return await fetch("https://api.example.com/").then((response) => response.text(), (error: Error) => error.message);
}
