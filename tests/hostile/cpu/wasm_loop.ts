/**
 * A loop in WebAssembly, which is compiled code without JavaScript's own checks.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<void> {
  // (module (func (export "f") (loop (br 0))))
  const bytes = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 102, 0, 0, 10, 9, 1, 7, 0, 3, 64,
    12, 0, 11, 11];
  const module = new WebAssembly.Module(new Uint8Array(bytes));
  (new WebAssembly.Instance(module).exports.f as () => void)();
}
