/**
 * The engine's eval, reached by a name that does not occur in the source.
 *
 * status: success
 * output: ["EvalError", "EvalError", "EvalError"]
 */
export async function execute(): Promise<string[]> {
  const name = ["ev", "al"].join("");
  const ways: (() => unknown)[] = [
    () => (globalThis as any)[name]("1 + 1"),
    () => Reflect.apply((globalThis as any)[name], undefined, ["1 + 1"]),
    () => [..."1"].map((globalThis as any)[name])[0] === 1 && (globalThis as any)[name].call(null, "(() => 7)()"),
  ];
  return ways.map((way) => {
    try {
      return `ran: ${way()}`;
    } catch (error) {
      return (error as Error).name;
    }
  });
}
