/**
 * A lone surrogate deep in a result, which JSON can spell and no database can store.
 *
 * status: error
 * error_code: InvalidOutput
 * details: {"path": "$.a[1].b"}
 */
export async function execute(): Promise<unknown> {
  return { a: [1, { b: "x\ud83d" }] };
}
