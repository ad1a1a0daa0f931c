/**
 * One record of twenty megabytes, larger than any frame between worker and runner.
 *
 * status: error
 * error_code: ResourceExhausted
 * message: bytes
 * records: 0
 * limits: {"memory_mb": 512}
 */
export async function execute(_input: unknown, context: any): Promise<void> {
  await context.api.createBreadcrumb({ title: "large", tags: ["{{tool}}"], context: { text: "x".repeat(20_000_000) } });
}
