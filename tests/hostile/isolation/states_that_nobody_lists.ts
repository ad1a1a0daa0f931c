/**
 * State without a property: the last match of regular expressions, counters of the console, numbers
 * of timers, entries of performance, a stack under a hidden key, an object's private fields that the
 * platform's own constructor writes into a builtin.
 *
 * status: success
 * times: 5
 * output: [false, false, 1, 0, "undefined", "TypeError"]
 */
export async function execute(): Promise<unknown[]> {
  const stack = Object.getOwnPropertyDescriptor(new Error("e"), "stack");
  const detail = Object.getOwnPropertyDescriptor(CustomEvent.prototype, "detail")!.get!;
  const read = (act: () => unknown) => {
    try {
      return String(act());
    } catch (error) {
      return (error as Error).name;
    }
  };
  const legacy: any = RegExp;
  const timer = setTimeout(() => {}, 1) as unknown as number;
  clearTimeout(timer);
  const found = [
    legacy.$1 === "secret",
    legacy.input === "a secret",
    timer,
    performance.getEntries().length,
    read(() => stack?.get?.call(globalThis)),
    read(() => detail.call(Array.prototype)),
  ];
  /(secret)/.exec("a secret");
  for (let i = 0; i < 7; i++) clearTimeout(setTimeout(() => {}, 1));
  performance.mark("secret");
  Error.captureStackTrace(globalThis);
  delete (globalThis as any).stack;
  const { getPrototypeOf, setPrototypeOf } = Reflect;
  const parent = getPrototypeOf(CustomEvent);
  setPrototypeOf(CustomEvent, function () {
    return Array.prototype;
  });
  read(() => new CustomEvent("e", { detail: "secret" }));
  setPrototypeOf(CustomEvent, parent);
  return found;
}
