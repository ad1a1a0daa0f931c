/**
 * A call under the profile subagent writes tools that request what the profile denies: one that it
 * calls, one that bootstraps itself, and one that a note triggers. None of them can escape the
 * profile.
 *
 * status: success
 * permissions: {"tools": true}
 * request: {"tags": ["profile:subagent"]}
 * output: ["PermissionDenied", "PermissionDenied", "PermissionDenied"]
 * limits: {"timeout_ms": 90000}
 */
const ASK = `
  const requestId = crypto.randomUUID();
  await context.api.createBreadcrumb({
    title: "Cancel it", tags: ["tool:request", "profile:main"], schema_name: "tool.request.v1",
    context: { tool: "cancel_scheduled_task", input: { name: "x" }, requestId },
  });
  let found = [];
  while (found.length === 0) {
    await new Promise((done) => setTimeout(done, 50));
    found = await context.api.searchBreadcrumbs({
      tag: "request:" + requestId, schema_name: "tool.response.v1", include_context: true,
    });
  }
  return found[0].context.error_code;`;

export async function execute(_input: unknown, context: any): Promise<unknown[]> {
  const write = async (name: string, extra: object) => {
    const source = `export async function execute(input, context) {\n  const ask = async () => {${ASK}\n  };\n` +
      `  await context.api.createBreadcrumb({ title: "told", tags: ["told:${name}"], context: { code: await ask() } });\n` +
      "  return 1;\n}\n";
    await context.api.createBreadcrumb({
      title: name, tags: ["tool", `tool:${name}`, "workspace:hostile"], schema_name: "tool.code.v1",
      context: {
        name, description: "Asks for what it may not have", version: "1.0.0", code: { language: "javascript", source },
        input_schema: { type: "object" }, output_schema: {}, permissions: { tools: true }, limits: { timeout_ms: 60000 },
        examples: [{ description: "None.", input: {} }], ...extra,
      },
    });
  };
  const told = async (name: string) => {
    for (;;) {
      const found = await context.api.searchBreadcrumbs({ tag: `told:${name}`, include_context: true });
      if (found.length > 0) return found[0].context.code;
      await new Promise((done) => setTimeout(done, 50));
    }
  };
  const ends: unknown[] = [];
  await write("{{tool}}-called", {});
  await context.api.createBreadcrumb({
    title: "Call", tags: ["tool:request"], schema_name: "tool.request.v1", context: { tool: "{{tool}}-called", input: {} },
  });
  ends.push(await told("{{tool}}-called"));
  await write("{{tool}}-started", { bootstrap: { enabled: true, mode: "once" } });
  ends.push(await told("{{tool}}-started"));
  await write("{{tool}}-set-off", { subscriptions: [{ any_tags: ["{{tool}}-note"] }] });
  for (let i = 0; i < 3; i++) {
    // The tool is possibly live only after the first note.
    await context.api.createBreadcrumb({ title: "A note", tags: ["{{tool}}-note"], context: {} });
    await new Promise((done) => setTimeout(done, 1000));
  }
  ends.push(await told("{{tool}}-set-off"));
  return ends;
}
