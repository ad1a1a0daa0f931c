/**
 * A tool with a long deadline uses all the processor time it can get. Its processor budget stops it
 * long before the deadline.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "cpu_ms", "allowed": 300}
 * limits: {"timeout_ms": 600000, "cpu_ms": 300}
 */
export async function execute(): Promise<number> {
  let x = 1;
  for (;;) x = (x * 48271) % 2147483647;
}
