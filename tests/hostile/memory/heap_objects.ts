/**
 * Endlessly many objects on the engine's heap.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<void> {
  const all: unknown[] = [];
  for (;;) all.push({ x: new Array(100).fill(all.length) });
}
