/**
 * Every builtin that the runtime's own scripts could use is broken before the tool throws.
 * Reporting the error must not need them.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: still told
 */
export async function execute(): Promise<void> {
  const broken = () => {
    throw new Error("broken builtin");
  };
  const targets: any[] = [];
  for (const owner of [Array, String, JSON, Promise, Symbol, Map, Set, Error, WeakMap, RegExp, Number, TypeError] as any[]) {
    targets.push(owner, owner.prototype);
  }
  targets.push(Object.prototype);
  const slots: [any, PropertyKey][] = [];
  for (const target of targets.filter(Boolean)) {
    for (const key of Reflect.ownKeys(target)) {
      const slot = Reflect.getOwnPropertyDescriptor(target, key)!;
      // The language itself reads these two from promises, including the tool's own.
      if (key === "then" || key === "constructor") continue;
      if (slot.configurable && typeof slot.value === "function") slots.push([target, key]);
    }
  }
  const { defineProperty } = Reflect;
  for (let i = 0; i < slots.length; i++) {
    defineProperty(slots[i][0], slots[i][1], { value: broken, configurable: true, writable: true });
  }
  (globalThis as any).JSON = undefined;
  throw { name: "Broken", message: "still told" };
}
