/**
 * Function constructors by reflection and by class inheritance: with `new`, with another prototype,
 * as a super class.
 *
 * status: success
 * output: ["EvalError", "EvalError", "EvalError"]
 */
export async function execute(): Promise<string[]> {
  const key = ["constr", "uctor"].join("");
  const Maker = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(execute), key)!.value as any;
  class Child extends Maker {}
  const ways = [
    () => Reflect.construct(Maker, ["return 1"], Array),
    () => new (Child as any)("return 1"),
    () => Maker.apply(null, ["a", "return a"]),
  ];
  return ways.map((way) => {
    try {
      return `built: ${typeof way()}`;
    } catch (error) {
      return (error as Error).name;
    }
  });
}
