/**
 * A tool that requests itself with every call, without end. Each call writes one record, so the
 * number of records is the number of runs.
 *
 * status: success
 * permissions: {"tools": ["{{tool}}"]}
 * output: "asked"
 * records: 9
 */
export async function execute(_input: unknown, context: any): Promise<string> {
  await context.api.createBreadcrumb({ title: "I ran", tags: ["{{tool}}"], context: {} });
  try {
    await context.api.createBreadcrumb({
      title: "again", tags: ["tool:request", "nested:0"], schema_name: "tool.request.v1",
      context: { tool: "{{tool}}", input: {} },
    });
  } catch (error) {
    if ((error as Error).name !== "PermissionDenied") throw error;
  }
  return "asked";
}
