/**
 * One text of a megabyte that occurs ten times in the result: small in the tool's memory, large as
 * JSON.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "output_bytes", "allowed": 4194304}
 */
export async function execute(): Promise<string[]> {
  const text = "x".repeat(1 << 20);
  return new Array(10).fill(text);
}
