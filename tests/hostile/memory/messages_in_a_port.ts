/**
 * Messages without a reader wait in a port, serialized, outside of the heap.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<void> {
  const { port1, port2 } = new MessageChannel();
  const piece = new Uint8Array(1 << 20).fill(1);
  for (;;) {
    port1.postMessage(piece);
    if (port2 === null) return;
    await null;
  }
}
