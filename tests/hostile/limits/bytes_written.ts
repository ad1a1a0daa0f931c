/**
 * Few, but large records, until the call has written more than its eight megabytes.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "bytes_written", "allowed": 8388608}
 * limits: {"memory_mb": 256}
 */
export async function execute(_input: unknown, context: any): Promise<void> {
  const text = "x".repeat(900_000);
  for (let i = 0; i < 50; i++) await context.api.createBreadcrumb({ title: `n ${i}`, tags: ["{{tool}}"], context: { text } });
}
