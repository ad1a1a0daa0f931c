/**
 * A tool with reuse in two tenants. The state of one must never be visible in the other.
 *
 * status: success
 * isolation: tool
 * calls: [
 *   {"tenant": 1, "input": {"mark": "one"}, "output": {"before": null}},
 *   {"tenant": 2, "input": {"mark": "two"}, "output": {"before": null}},
 *   {"tenant": 2, "input": {"mark": "two"}, "output": {"before": "two"}},
 *   {"tenant": 1, "input": {"mark": "one"}, "output": {"before": "one"}}]
 */
export async function execute(input: { mark: string }): Promise<unknown> {
  const scope: any = globalThis;
  const before = scope.mark ?? null;
  scope.mark = input.mark;
  return { before };
}
