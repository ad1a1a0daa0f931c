/**
 * A tool with reuse adds twenty megabytes to its globals with each call. All of its state counts
 * toward its limit.
 *
 * status: success
 * isolation: tool
 * limits: {"memory_mb": 64, "timeout_ms": 30000, "cpu_ms": 30000}
 * calls: [
 *   {"input": {"mb": 24}, "output": true},
 *   {"input": {"mb": 24}, "output": true},
 *   {"input": {"mb": 60}, "error_code": "ResourceExhausted", "details": {"limit": "memory_mb", "allowed": 64}},
 *   {"input": {"mb": 24}, "output": true}]
 */
const kept: Uint8Array[] = [];

export async function execute(input: { mb: number }): Promise<boolean> {
  for (let i = 0; i < input.mb; i++) kept.push(new Uint8Array(1 << 20).fill(1));
  return kept.length >= input.mb;
}
