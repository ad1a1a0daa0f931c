/**
 * The tool itself writes a response, for a request that is not its own.
 *
 * status: error
 * error_code: PermissionDenied
 * message: tool.response.v1
 * records: 0
 */
export async function execute(_input: unknown, context: any): Promise<void> {
  await context.api.createBreadcrumb({
    title: "Response of good",
    tags: ["{{tool}}", "tool:response", "request:another"],
    schema_name: "tool.response.v1",
    context: { request_id: "another", tool: "good", status: "success", output: 1 },
  });
}
