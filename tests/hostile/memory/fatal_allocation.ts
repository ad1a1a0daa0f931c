/**
 * One array of two billion numbers. Out of such memory, the engine does not throw, it aborts the
 * process.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<number> {
  const text = "ab".repeat(1 << 25);
  return text.split("").map((c) => ({ c })).length;
}
