/**
 * Every object that the global scope leads to gets a mark, without an error if it refuses. The next
 * calls in the same process look for marks.
 *
 * status: success
 * times: 5
 * output: []
 */
export async function execute(_input: unknown, context: any): Promise<string[]> {
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf, ownKeys } = Reflect;
  const found: string[] = [];
  const seen = new Map<unknown, string>();
  const queue: any[] = [];
  const add = (path: string, value: unknown) => {
    const isObject = (typeof value === "object" && value !== null) || typeof value === "function";
    if (!isObject || seen.has(value)) return;
    seen.set(value, path);
    queue.push(value);
  };
  add("global", globalThis);
  add("context", context);
  add("error", new Error("e"));
  add("event", new Event("e"));
  add("iterator", new Headers().keys());
  add("generator", function* () {});
  while (queue.length > 0) {
    const object = queue.pop();
    const path = seen.get(object)!;
    if (Object.hasOwn(object, "marked")) found.push(path);
    for (const key of ownKeys(object)) {
      const slot = getOwnPropertyDescriptor(object, key)!;
      for (const value of [slot.value, slot.get, slot.set]) add(`${path}.${String(key)}`, value);
    }
    add(`${path}.prototype`, getPrototypeOf(object));
    defineProperty(object, "marked", { value: true });
  }
  return found;
}
