/**
 * Every refusal of a buffer is caught and a smaller one is requested. This way, too, a tool cannot
 * exceed its memory.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<unknown> {
  const all: Uint8Array[] = [];
  for (let size = 1 << 22; ; size = Math.max(1 << 12, size >> 1)) {
    try {
      for (;;) all.push(new Uint8Array(size).fill(1));
    } catch {
      continue;
    }
  }
}
