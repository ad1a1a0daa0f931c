/**
 * A mock whose headers contain line breaks and names that are no names, to become further headers.
 *
 * status: steps
 * tools: 0
 * permissions: {"net": ["api.example.com"]}
 * steps: [
 *   {"create": {"examples": [{"description": "Lines", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}, "response": {"headers": {"x-one": "a\r\nset-cookie: b"}}}]}]},
 *   "expect": {"status": "rejected"}, "says": ["x-one"]},
 *   {"create": {"examples": [{"description": "No name", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}, "response": {"headers": {"x two:": "a"}}}]}]},
 *   "expect": {"status": "rejected"}, "says": ["x two"]}
 *   ]
 */
export async function execute(): Promise<unknown> {
  const response = await fetch("https://api.example.com/");
  return [...response.headers];
}
