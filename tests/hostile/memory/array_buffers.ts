/**
 * Endlessly many buffers. They are outside of the heap, so its limit does not count them.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<void> {
  const all: Uint8Array[] = [];
  for (;;) all.push(new Uint8Array(1 << 20).fill(1));
}
