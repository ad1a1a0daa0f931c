/**
 * Examples of 10 MB and of 1 MB, which would be parsed, stored and sent back.
 *
 * status: steps
 * tools: 0
 * steps: [
 *   {"create": {"examples": [{"description": "Large", "input": {"text": {"@repeat": ["x", 10000000]}}}]}, "refused": "at most 4194304"},
 *   {"create": {"examples": [{"description": "Large", "input": {"text": {"@repeat": ["x", 1000000]}}}]},
 *   "expect": {"status": "rejected", "validation": {"errors": [{"rule": "example-form", "field": "examples[0]"}]}}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
