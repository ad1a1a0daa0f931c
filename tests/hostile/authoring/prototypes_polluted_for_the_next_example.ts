/**
 * Examples that replace builtins, so that the comparison of the next one, or its tool, uses them.
 *
 * status: steps
 * tools: 0
 * examples: [{"description": "Pollutes", "input": {"first": true}, "output": "polluted"}, {"description": "Is lied to", "input": {}, "output": "polluted"}]
 * steps: [
 *   {"create": {}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "example-fails", "field": "examples[1]"}]}, "examples": [{"status": "passed"}, {"status": "failed", "actual": "clean"}]}}
 *   ]
 */
export async function execute(input: { first?: boolean }): Promise<string> {
  if (input.first) {
    (Object.prototype as any).toJSON = () => "polluted";
    JSON.stringify = () => '"polluted"';
    (Object.prototype as any).mark = "polluted";
    return "polluted";
  }
  return ({} as any).mark ?? "clean";
}
