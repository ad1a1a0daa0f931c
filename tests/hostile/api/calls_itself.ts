/**
 * A tool that asks for itself with every call, in a row without an end. Each call writes one record, so the records tell
 * how often it ran.
 *
 * status: success
 * output: "asked"
 * records: 17
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
