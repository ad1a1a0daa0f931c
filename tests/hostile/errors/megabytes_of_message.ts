/**
 * Message, name, stack and a thousand inner errors of megabytes each. The report of a failure stays
 * small enough to be stored, as the next call finds in its record.
 *
 * status: success
 * calls: [
 *   {"input": {"fail": true}, "error_code": "ExecutionFailed", "message": ["mmmm"]},
 *   {"input": {"fail": false}, "output": {"found": 1, "kept": true, "small": true}}]
 */
export async function execute(input: { fail: boolean }, context: any): Promise<unknown> {
  if (!input.fail) {
    const query = { all_tags: ["tool:response"], context_match: [{ path: "$.tool", op: "eq", value: "{{tool}}" }], include_context: true };
    const found = await context.api.searchBreadcrumbs(query);
    const size = JSON.stringify(found).length;
    return { found: found.length, kept: size > 1_000, small: size < 256 * 1024 };
  }
  const big = "m".repeat(5_000_000);
  const inner = Array.from({ length: 1_000 }, () => new Error(big));
  const error: any = new AggregateError(inner, big, { cause: new Error(big, { cause: big }) });
  error.stack = "s".repeat(5_000_000);
  throw Object.assign(error, { extra: inner });
}
