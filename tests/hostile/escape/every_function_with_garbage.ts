/**
 * Every function that is reachable from the global object is called and constructed with unexpected
 * values. None of the native functions behind them may crash the process.
 *
 * status: success
 * output: "alive"
 * limits: {"timeout_ms": 600000, "cpu_ms": 50000, "memory_mb": 512}
 */
export async function execute(): Promise<string> {
  const seen = new Set<unknown>();
  const functions: any[] = [];
  const queue: unknown[] = [globalThis];
  for (let value = queue.pop(); value !== undefined; value = queue.pop()) {
    if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) continue;
    seen.add(value);
    if (typeof value === "function") functions.push(value);
    for (const key of Reflect.ownKeys(value)) {
      const slot = Reflect.getOwnPropertyDescriptor(value, key)!;
      queue.push(...[slot.value, slot.get, slot.set].filter((one) => one !== undefined && one !== null));
    }
    const parent = Reflect.getPrototypeOf(value);
    if (parent !== null) queue.push(parent);
  }
  // Functions that would wait or loop by design, or change what this code itself uses.
  const left = /^(clear|reset|pop|shift|splice|reverse|sort|fill|copyWithin|setPrototypeOf|freeze|seal|preventExtensions|define|delete|__define|set |assign|close|terminate|wait)/;
  const strange: any[] = [undefined, null, -1, 1.5, NaN, "", "\ud800", Symbol("s"), 10n, {}, [], () => {}, new ArrayBuffer(8),
    new Uint8Array(3), new Proxy({}, {}), Object.create(null)];
  let dice = 7;
  const one = () => strange[(dice = (dice * 48271) % 2147483647) % strange.length];
  for (const f of functions) {
    if (left.test(f.name) || f === Symbol.iterator) continue;
    for (const call of [() => f(), () => f.call(one(), one(), one()), () => Reflect.construct(f, [one(), one(), one()]),
      () => Reflect.construct(f, []), () => Reflect.apply(f, one(), [one(), one(), one(), one()])]) {
      try {
        const result = call();
        if (result instanceof Promise) result.catch(() => {});
      } catch {
        continue;
      }
    }
  }
  return "alive";
}
