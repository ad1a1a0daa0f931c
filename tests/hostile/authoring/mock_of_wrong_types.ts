/**
 * Mocks whose parts have other types than they must have.
 *
 * status: steps
 * tools: 0
 * permissions: {"net": ["api.example.com"]}
 * steps: [
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "http": "https://api.example.com/"}]}, "expect": {"status": "rejected"}, "says": ["examples"]},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "http": [{"request": {"url": 7}}]}]}, "expect": {"status": "rejected"}, "says": ["examples"]},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}, "response": {"status": "200"}}]}]}, "expect": {"status": "rejected"}, "says": ["examples"]},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}, "response": {"status": 99}}]}]}, "expect": {"status": "rejected"}, "says": ["examples"]},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}, "response": {"headers": {"x": 1}}}]}]}, "expect": {"status": "rejected"}, "says": ["examples"]},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "http": [{"request": {"url": "file:///etc/passwd"}}]}]}, "expect": {"status": "rejected"}, "says": ["examples"]}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
