/**
 * A growing WebAssembly memory, which the engine allocates differently from buffers.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<void> {
  const memory = new WebAssembly.Memory({ initial: 1 });
  const kept: WebAssembly.Memory[] = [memory];
  for (;;) {
    try {
      memory.grow(16);
    } catch {
      kept.push(new WebAssembly.Memory({ initial: 16 }));
    }
    for (const one of kept.slice(-1).concat(memory)) new Uint8Array(one.buffer).fill(1);
  }
}
