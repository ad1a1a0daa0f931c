/**
 * JSON text with a depth of hundreds of thousands of arrays, for the engine's own parser.
 *
 * status: success
 * output: "no crash"
 * limits: {"memory_mb": 512}
 */
export async function execute(): Promise<string> {
  for (const text of ["[".repeat(1_000_000), "[".repeat(300_000) + "]".repeat(300_000), '{"a":'.repeat(100_000)]) {
    try {
      JSON.parse(text);
    } catch {
      continue;
    }
  }
  return "no crash";
}
