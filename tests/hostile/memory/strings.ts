/**
 * Text that is flat, large and different each time: no objects, no buffers.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<void> {
  const all: string[] = [];
  for (;;) all.push(JSON.stringify("x".repeat(1 << 20) + all.length));
}
