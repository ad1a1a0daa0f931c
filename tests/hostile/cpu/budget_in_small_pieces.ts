/**
 * Processor time is used in small pieces with sleep in between, so that no single check finds the
 * tool busy for long.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "cpu_ms", "allowed": 300}
 * limits: {"timeout_ms": 600000, "cpu_ms": 300}
 */
export async function execute(): Promise<void> {
  for (;;) {
    const until = Date.now() + 5;
    while (Date.now() < until);
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
}
