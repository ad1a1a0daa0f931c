/**
 * A tool with a tenth of a processor that burns all it can: slowed down, it cannot use up in two seconds of wall time the
 * processor time that it could use up in less than one, so the wall ends it and not the budget.
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
