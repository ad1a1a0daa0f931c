/**
 * Four bombs at once. Each is stopped by itself, and the honest call beside them succeeds.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 48}
 * limits: {"timeout_ms": 600000, "memory_mb": 48, "cpu_ms": 60000}
 * times: 4
 * side_by_side: true
 */
export async function execute(): Promise<void> {
  const all: unknown[] = [];
  for (;;) {
    all.push(new Uint8Array(1 << 18).fill(1), Array.from({ length: 1000 }, (_, i) => ({ i })));
  }
}
