/**
 * An output that is itself a matcher must not match everything that is expected.
 *
 * status: steps
 * tools: 0
 * steps: [
 *   {"create": {"examples": [{"description": "One", "input": {}, "output": {"n": 1}}]},
 *   "expect": {"status": "rejected", "validation": {"errors": [{"rule": "example-fails"}]}}},
 *   {"create": {"examples": [{"description": "Any", "input": {}, "output": {"$any": false}}]},
 *   "expect": {"status": "rejected", "validation": {"errors": [{"rule": "example-matcher"}]}}}
 *   ]
 */
export async function execute(): Promise<unknown> {
  return { $any: true };
}
