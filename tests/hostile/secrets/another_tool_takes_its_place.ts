/**
 * A tool without a grant deletes, renames and rewrites one that has it, through context.api. The
 * record with the grant stays as its curator reviewed it.
 *
 * status: success
 * permissions: {"tools": true}
 * output: ["PermissionDenied", "PermissionDenied", "PermissionDenied"]
 * secrets: [{"name": "PLACE_KEY", "value": "sk-live-place-0123456789", "hosts": ["api.test:{{port}}"]}]
 * limits: {"timeout_ms": 600000}
 */
const USURPER = `
export async function execute(input, context) {
  const [found] = await context.api.searchBreadcrumbs({ all_tags: ["tool:{{tool}}"], schema_name: "tool.code.v1", include_context: true });
  const ends = [];
  const change = async (changes) => ends.push(await context.api.updateBreadcrumb(found.id, found.version, changes).then(() => "changed", (error) => error.name));
  await change({ context: { ...found.context, name: "{{tool}}-renamed" } });
  await change({ title: "renamed", tags: ["tool", "tool:{{tool}}-renamed", "workspace:tools"] });
  ends.push(await context.api.deleteBreadcrumb(found.id).then(() => "deleted", (error) => error.name));
  return ends;
}`;

export async function execute(_input: unknown, context: any): Promise<unknown> {
  const name = "{{tool}}-made";
  await context.api.createBreadcrumb({
    title: name, tags: ["tool", `tool:${name}`, "workspace:tools"], schema_name: "tool.code.v1",
    context: {
      name, description: "Made by a tool.", version: "1.0.0", code: { language: "javascript", source: USURPER },
      input_schema: { type: "object" }, output_schema: {}, examples: [{ description: "None.", input: {} }],
    },
  });
  const requestId = crypto.randomUUID();
  await context.api.createBreadcrumb({
    title: "Call the usurper", tags: ["tool:request"], schema_name: "tool.request.v1", context: { tool: name, input: {}, requestId },
  });
  for (;;) {
    const [answer] = await context.api.searchBreadcrumbs({ all_tags: [`request:${requestId}`], include_context: true });
    if (answer) return answer.context.output ?? answer.context.error;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
