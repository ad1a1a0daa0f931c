/**
 * Key derivation that takes hours runs on threads beside the engine's. A call that starts it and
 * returns leaves it behind: later calls in the same process would find their threads occupied and
 * their budget used.
 *
 * status: success
 * limits: {"timeout_ms": 10000, "cpu_ms": 1500}
 * calls: [
 *   {"input": {"burn": true}, "output": "left"},
 *   {"input": {"burn": false}, "output": 32},
 *   {"input": {"burn": true}, "output": "left"},
 *   {"input": {"burn": false}, "output": 32},
 *   {"input": {"burn": false}, "output": 32}]
 */
export async function execute(input: { burn: boolean }): Promise<unknown> {
  const text = new TextEncoder().encode("text");
  if (!input.burn) return (await crypto.subtle.digest("SHA-256", text)).byteLength;
  const key = await crypto.subtle.importKey("raw", text, "PBKDF2", false, ["deriveBits"]);
  for (let i = 0; i < 4; i++) {
    crypto.subtle.deriveBits({ name: "PBKDF2", hash: "SHA-512", salt: text, iterations: 2_000_000_000 }, key, 256);
  }
  await new Promise((resolve) => setTimeout(resolve, 20));
  return "left";
}
