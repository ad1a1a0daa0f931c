/**
 * A global that one call leaves behind: on the global object, on a prototype and in the module's
 * own variables.
 *
 * status: success
 * times: 4
 * output: {"calls": 1, "global": 1, "prototype": 1, "builtin": 1}
 */
let calls = 0;

export async function execute(): Promise<unknown> {
  const count = (on: any) => (on.leftBehind = (on.leftBehind ?? 0) + 1);
  calls += 1;
  return { calls, global: count(globalThis), prototype: count(Array.prototype), builtin: count(JSON) };
}
