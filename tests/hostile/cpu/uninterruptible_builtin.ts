/**
 * A builtin of the engine searches 2^53 array holes in one step, in which engines do not check for
 * termination. Only killing the process stops it.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<number> {
  return Array.prototype.indexOf.call({ length: Number.MAX_SAFE_INTEGER, 0: "a" }, "b");
}
