/**
 * A tool with a tenth of a processor that uses all it can. Slowed down, in two seconds of wall time
 * it cannot use the processor time that it could use in less than one. So it reaches the wall time
 * limit and not the processor budget.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 2500}
 * limits: {"timeout_ms": 2500, "cpu_ms": 1000, "cpu_percent": 10}
 */
export async function execute(): Promise<number> {
  let x = 1;
  for (;;) x = (x * 48271) % 2147483647;
}
