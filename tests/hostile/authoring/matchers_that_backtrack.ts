/**
 * Matchers whose pattern needs exponential time for the output of the tool.
 *
 * status: steps
 * tools: 0
 * steps: [
 *   {"create": {"examples": [{"description": "Slow", "input": {}, "output": {"$regex": "^(a+)+$"}}]}, "expect": {"status": "rejected"}},
 *   {"create": {"examples": [{"description": "Slow", "input": {}, "output": {"$regex": "^(?=(a|a)*$)(a|aa)+$"}}]}, "expect": {"status": "rejected"}}
 *   ]
 */
export async function execute(): Promise<string> {
  return `${"a".repeat(50_000)}!`;
}
