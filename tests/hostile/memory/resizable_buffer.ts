/**
 * One buffer that can grow to 4 GiB, grown step by step. Only its first byte was allocated like
 * other buffers.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<void> {
  const buffer: any = new (ArrayBuffer as any)(1, { maxByteLength: 2 ** 32 });
  for (let size = 1; ; size *= 2) {
    buffer.resize(size);
    new Uint8Array(buffer).fill(1);
  }
}
