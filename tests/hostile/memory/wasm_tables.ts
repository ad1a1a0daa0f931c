/**
 * WebAssembly tables with a million entries each, without any buffer.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "memory_mb", "allowed": 64}
 * limits: {"timeout_ms": 600000, "memory_mb": 64, "cpu_ms": 60000}
 */
export async function execute(): Promise<void> {
  const all: unknown[] = [];
  for (;;) {
    all.push(new WebAssembly.Table({ element: "externref" as any, initial: 1_000_000 }, { n: all.length } as any));
    await null;
  }
}
