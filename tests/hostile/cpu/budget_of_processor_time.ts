/**
 * A tool with a long deadline that burns all the processor it can get: its budget of processor time ends it, long before.
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
