/**
 * One buffer that may grow to 4 GiB, grown step by step: only its first byte was allocated as any buffer is.
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
