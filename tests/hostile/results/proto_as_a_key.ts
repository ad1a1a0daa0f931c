/**
 * Keys that change objects when they are copied carelessly. In a result they are keys like any
 * other.
 *
 * status: success
 * output: {"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}, "toString": "text"}
 */
export async function execute(): Promise<unknown> {
  return JSON.parse('{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}, "toString": "text"}');
}
