/**
 * A search through 2^53 holes that a builtin of the engine makes in one step. Engines do not look for a wish to end in
 * there: only the death of the process ends it.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<number> {
  return Array.prototype.indexOf.call({ length: Number.MAX_SAFE_INTEGER, 0: "a" }, "b");
}
