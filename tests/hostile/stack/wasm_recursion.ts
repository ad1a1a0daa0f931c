/**
 * Recursion in WebAssembly, whose frames the engine does not see as functions of JavaScript.
 *
 * status: success
 * output: "RangeError"
 */
export async function execute(): Promise<string> {
  // (module (func $f (export "f") (call $f) (call $f)))
  const bytes = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 8, 1, 6, 0, 16, 0,
    16, 0, 11];
  try {
    (new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(bytes))).exports.f as () => void)();
  } catch (error) {
    return (error as Error).name;
  }
  return "no end";
}
