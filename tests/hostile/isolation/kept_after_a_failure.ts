/**
 * A tool with reuse fails. Its half-finished state must not remain.
 *
 * status: success
 * isolation: tool
 * calls: [
 *   {"input": {"fail": false}, "output": 1},
 *   {"input": {"fail": true}, "error_code": "ExecutionFailed", "message": ["on purpose"]},
 *   {"input": {"fail": false}, "output": 1}]
 */
let calls = 0;

export async function execute(input: { fail: boolean }): Promise<number> {
  calls += 1;
  if (input.fail) throw new Error("on purpose");
  return calls;
}
