/**
 * Every global is deleted or frozen with a wrong value. The next call must find all of them again.
 *
 * status: success
 * times: 3
 * output: {"fetch": "function", "json": "object", "left": "undefined"}
 */
export async function execute(): Promise<unknown> {
  const scope: any = globalThis;
  const found = { fetch: typeof fetch, json: typeof JSON, left: typeof scope.left };
  const { defineProperty } = Reflect;
  const keys = Reflect.ownKeys(scope);
  for (let i = 0; i < keys.length; i++) defineProperty(scope, keys[i], { value: 0, writable: false, configurable: false });
  defineProperty(scope, "left", { value: "over" });
  return found;
}
