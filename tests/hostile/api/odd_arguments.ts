/**
 * Arguments of all wrong types for every method of context.api. Each is refused in the tool, and
 * none reaches the store as something else.
 *
 * status: success
 * output: []
 * records: 0
 */
export async function execute(_input: unknown, context: any): Promise<string[]> {
  const odd: any[] = [undefined, null, 1, NaN, true, "x", "../../etc", "\ud800", Symbol.iterator, 7n, [], () => 1, new Map(),
    new Proxy({}, { get() { throw new Error("trap"); } }), { context: 1 }, { title: { toString: 1 } }, { tags: "x" }];
  const done: string[] = [];
  for (const method of ["getBreadcrumb", "createBreadcrumb", "updateBreadcrumb", "deleteBreadcrumb", "vectorSearch", "getSecret"]) {
    for (const value of odd) {
      try {
        await context.api[method](value, value, value);
        done.push(`${method} ${String(value)}`);
      } catch {
        continue;
      }
    }
  }
  return done;
}
