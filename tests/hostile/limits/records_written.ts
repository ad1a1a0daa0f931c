/**
 * Endlessly many small records. One call can write a hundred.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "breadcrumbs_written", "allowed": 100}
 * records: 100
 */
export async function execute(_input: unknown, context: any): Promise<void> {
  for (let i = 0; ; i++) await context.api.createBreadcrumb({ title: `n ${i}`, tags: ["{{tool}}"], context: { i } });
}
