/**
 * Changes and deletions in place of new records: each of them is work and history for the store, and counts.
 *
 * status: error
 * error_code: ResourceExhausted
 * details: {"limit": "breadcrumbs_written", "allowed": 100}
 * records: 1
 */
export async function execute(_input: unknown, context: any): Promise<void> {
  const { id } = await context.api.createBreadcrumb({ title: "changing", tags: ["{{tool}}"], context: {} });
  for (let version = 1; ; version++) await context.api.updateBreadcrumb(id, version, { title: `changed ${version}` });
}
