/**
 * A setter for the first element of every array: code that pushes onto an array hands over what it
 * pushes, and finds nothing there afterwards. The guards against deep and circular results are made
 * of such arrays.
 *
 * status: error
 * error_code: InvalidOutput
 * message: nested too deeply
 */
export async function execute(): Promise<unknown> {
  let nest: unknown = "bottom";
  for (let i = 0; i < 3_000; i++) nest = { nest };
  for (const index of ["0", "1", "2", "99"]) {
    Object.defineProperty(Array.prototype, index, { configurable: true, set() {}, get: () => undefined });
  }
  return nest;
}
