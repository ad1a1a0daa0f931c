/**
 * A result of five million characters, more than a response can have.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "output_bytes", "allowed": 4194304}
 */
export async function execute(): Promise<string> {
  return "x".repeat(5_000_000);
}
