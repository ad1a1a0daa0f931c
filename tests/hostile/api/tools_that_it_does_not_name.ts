/**
 * A tool calls tools that its permissions do not name: by callTool, by a request that it writes,
 * and by a request to create a tool.
 *
 * status: success
 * permissions: {"tools": ["calculator"]}
 * output: ["PermissionDenied", "PermissionDenied", "PermissionDenied"]
 */
export async function execute(_input: unknown, context: any): Promise<string[]> {
  const { api } = context;
  const request = (schema_name: string, fields: object) =>
    api.createBreadcrumb({ title: "x", tags: ["tool:request"], schema_name, context: fields });
  const tries = [
    api.callTool("{{tool}}", {}),
    request("tool.request.v1", { tool: "{{tool}}", input: {} }),
    request("tool.create.request.v1", { request_id: "r", tool_spec: { name: "made" } }),
  ];
  return (await Promise.allSettled(tries)).map((one: any) => one.reason?.name ?? "done");
}
