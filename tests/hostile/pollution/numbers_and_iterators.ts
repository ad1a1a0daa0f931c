/**
 * Array iteration, the primitive values of numbers and function calls are replaced, so that counts
 * and copies go wrong.
 *
 * status: success
 * output: {"sum": 6}
 * console: counted 6
 */
export async function execute(): Promise<unknown> {
  const change = (of: any, key: PropertyKey, value: unknown) => Reflect.defineProperty(of, key, { value });
  change(Array.prototype, Symbol.iterator, function* () {
    yield "nothing";
  });
  change(Number.prototype, "valueOf", () => 0);
  for (const [name, wrong] of Object.entries({ push: 0, slice: [], join: "joined", concat: [], indexOf: 7 })) {
    change(Array.prototype, name, () => wrong);
  }
  let functions: any = execute;
  while (!Object.hasOwn(functions, "apply")) functions = Reflect.getPrototypeOf(functions);
  for (const name of ["call", "apply", "bind"]) change(functions, name, () => "called");
  const sum = 1 + 2 + 3;
  console.log("counted", sum);
  return { sum };
}
