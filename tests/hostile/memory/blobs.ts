/**
 * Blobs store their bytes outside of the engine, in the platform's own store.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<void> {
  const all: Blob[] = [];
  const piece = new Uint8Array(1 << 20).fill(1);
  for (;;) {
    all.push(new Blob([piece, String(all.length)]));
    await null;
  }
}
