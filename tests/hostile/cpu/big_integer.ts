/**
 * One multiplication of numbers with millions of digits, and its conversion to text: long
 * arithmetic runs in native code.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<number> {
  let product = 3n ** 2_000_000n;
  for (;;) product = (product * product) % (7n ** 3_000_000n);
}
