/**
 * A tool writes a draft, whose author is then not the agent that called the tool, and calls it for
 * that agent. A draft is found only by calls of its own author.
 *
 * status: success
 * permissions: {"tools": true}
 * output: "ToolNotFound"
 * limits: {"timeout_ms": 600000}
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  const name = "{{tool}}-made";
  await context.api.createBreadcrumb({
    title: name, tags: ["tool", `tool:${name}`, "tool:draft", "workspace:tools"], schema_name: "tool.code.v1",
    context: {
      name, description: "Made by a tool.", version: "1.0.0",
      code: { language: "javascript", source: "export async function execute() { return 1 }" },
      input_schema: { type: "object" }, output_schema: {}, examples: [{ description: "None.", input: {} }],
    },
  });
  return await context.api.callTool(name).catch((error: any) => error.code ?? error.name);
}
