/**
 * Objects that engines and runtimes leave behind: their global objects, also where a walk over
 * everything reachable finds them.
 *
 * status: success
 * output: []
 */
export async function execute(): Promise<string[]> {
  const wanted = /^(Deno|Bun|process|require|module|__bootstrap|__sandbox|core|ops|internals|primordials|op_\w+)$/;
  const seen = new Set<unknown>();
  const found: string[] = "global" in globalThis ? ["global"] : [];
  const queue: [unknown, string][] = [[globalThis, ""]];
  for (let step = queue.pop(); step; step = queue.pop()) {
    const [value, path] = step;
    if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) continue;
    seen.add(value);
    if (typeof value === "function" && wanted.test(value.name) && path !== "") found.push(path);
    for (const key of Reflect.ownKeys(value)) {
      if (wanted.test(String(key))) found.push(`${path}.${String(key)}`);
      const slot = Reflect.getOwnPropertyDescriptor(value, key)!;
      for (const next of [slot.value, slot.get, slot.set]) queue.push([next, `${path}.${String(key)}`]);
    }
    queue.push([Reflect.getPrototypeOf(value), `${path}.^`]);
  }
  return found;
}
