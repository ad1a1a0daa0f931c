/**
 * A draft asks for a call of another author's draft, which only that author can call.
 *
 * status: steps
 * permissions: {"net": ["api.example.com"], "tools": true}
 * steps: [
 *   {"by": "rival", "create": {"name": "{{tool}}-rival", "code": {"language": "javascript", "source": "export async function execute(input) { if (!input.real) await fetch('https://api.example.com/'); return 'of the rival'; }"}},
 *   "expect": {"status": "created", "draft": true}},
 *   {"create": {}, "expect": {"status": "created", "draft": true}},
 *   {"call": "{{tool}}-rival", "input": {"real": true}, "expect": {"error_code": "ToolNotFound"}},
 *   {"call": "{{tool}}", "input": {"real": true}, "expect": {"status": "success", "output": "ToolNotFound"}},
 *   {"by": "rival", "call": "{{tool}}-rival", "input": {"real": true}, "expect": {"output": "of the rival"}}
 *   ]
 */
export async function execute(input: { real?: boolean }, context: any): Promise<string> {
  if (!input.real) await fetch("https://api.example.com/");
  await context.api.createBreadcrumb({
    title: "ask", tags: ["tool:request", "workspace:hostile"], schema_name: "tool.request.v1",
    context: { tool: "{{tool}}-rival", input: { real: true }, requestId: "{{tool}}-inner" },
  });
  for (;;) {
    const query = { schema_name: "tool.response.v1", tag: "request:{{tool}}-inner", include_context: true };
    const [response] = await context.api.searchBreadcrumbs(query);
    if (response) return response.context.error_code ?? response.context.output;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
