/**
 * WebAssembly modules that are compiled and held: machine code is outside of heap and buffers.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<void> {
  const number = (n: number): number[] => (n < 128 ? [n] : [(n & 127) | 128, ...number(n >>> 7)]);
  const section = (id: number, body: number[]) => [id, ...number(body.length), ...body];
  const count = 3_000;
  const all: unknown[] = [];
  for (let round = 0; ; round++) {
    // Each function returns a different number, so that no two modules are the same.
    const bodies: number[] = [];
    for (let i = 0; i < count; i++) {
      const code = [0, 65, ...number((round * count + i) & 0x1fffff), 65, 1, 106, 11];
      bodies.push(...number(code.length), ...code);
    }
    const functions = Array.from({ length: count }, () => 0);
    const module = [0, 97, 115, 109, 1, 0, 0, 0, ...section(1, [1, 96, 0, 1, 127]), ...section(3, [...number(count), ...functions]),
      ...section(7, [1, 1, 102, 0, 0]), ...section(10, [...number(count), ...bodies])];
    all.push(new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array(module))));
    await null;
  }
}
