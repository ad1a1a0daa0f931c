/**
 * Many resizable buffers, each far below any limit.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<void> {
  const all: any[] = [];
  for (;;) {
    const buffer: any = new (ArrayBuffer as any)(0, { maxByteLength: 1 << 20 });
    buffer.resize(1 << 20);
    new Uint8Array(buffer).fill(7);
    all.push(buffer);
  }
}
