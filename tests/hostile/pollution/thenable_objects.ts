/**
 * A `then` on the prototype of all objects: awaiting any object runs the tool's code.
 *
 * status: success
 * output: "hijacked"
 */
export async function execute(): Promise<unknown> {
  Object.defineProperty(Object.prototype, "then", {
    configurable: true,
    value(resolve: (value: unknown) => void) {
      delete (Object.prototype as any).then;
      resolve("hijacked");
    },
  });
  return { honest: true };
}
