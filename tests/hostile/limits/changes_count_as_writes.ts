/**
 * Changes and deletions instead of new records. Each of them costs the store work and history, and
 * counts.
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
