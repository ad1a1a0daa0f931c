/**
 * An argument of a context.api call has a getter that loops while the call is serialized.
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
