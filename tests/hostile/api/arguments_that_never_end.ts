/**
 * An argument of a call of context.api whose getter loops while the call is written down.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 * records: 0
 */
export async function execute(_input: unknown, context: any): Promise<void> {
  await context.api.createBreadcrumb({
    tags: ["{{tool}}"],
    get title() {
      for (;;);
    },
  });
}
