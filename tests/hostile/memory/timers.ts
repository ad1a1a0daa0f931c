/**
 * Ten million timers, each with its closure, none of which will ever fire.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<void> {
  for (let i = 0; ; i++) setTimeout(() => i, 1_000_000_000);
}
