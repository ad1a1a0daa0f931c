/**
 * The constructors of functions, of all four kinds, reached through the functions that they
 * construct.
 *
 * status: success
 * output: ["EvalError", "EvalError", "EvalError", "EvalError", "EvalError"]
 */
export async function execute(): Promise<string[]> {
  const key = "con" + String.fromCharCode(115) + "tructor";
  const made: any[] = [() => 1, async () => 1, function* () {}, async function* () {}, fetch];
  return made.map((one) => {
    try {
      const built = one[key]("return globalThis");
      return `built: ${typeof built}`;
    } catch (error) {
      return (error as Error).name;
    }
  });
}
