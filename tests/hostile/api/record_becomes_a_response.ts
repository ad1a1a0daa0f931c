/**
 * An ordinary record becomes a response later, by a change of its schema.
 *
 * status: error
 * error_code: PermissionDenied
 * message: tool.response.v1
 * records: 1
 */
export async function execute(_input: unknown, context: any): Promise<void> {
  const { id } = await context.api.createBreadcrumb({ title: "harmless", tags: ["{{tool}}"], context: {} });
  await context.api.updateBreadcrumb(id, 1, { schema_name: "tool.response.v1", tags: ["{{tool}}", "tool:response"] });
}
