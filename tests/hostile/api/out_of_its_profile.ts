/**
 * A call under the profile subagent requests a tool that the profile denies: with tags that claim
 * otherwise, with a record that becomes a request later, and by removing the profile's tag.
 *
 * status: success
 * permissions: {"tools": true}
 * request: {"tags": ["profile:subagent"]}
 * output: ["PermissionDenied", "PermissionDenied", ["tool:request", "nested:1", "profile:subagent"]]
 * limits: {"timeout_ms": 600000}
 */
export async function execute(_input: unknown, context: any): Promise<unknown[]> {
  const ends: unknown[] = [];
  const request = (requestId: string) => ({ tool: "cancel_scheduled_task", input: { name: "x" }, requestId });
  const answer = async (requestId: string) => {
    for (;;) {
      const query = { tag: `request:${requestId}`, schema_name: "tool.response.v1", include_context: true };
      const found = await context.api.searchBreadcrumbs(query);
      if (found.length > 0) return found[0].context.error_code ?? found[0].context.status;
      await new Promise((done) => setTimeout(done, 50));
    }
  };
  const schema_name = "tool.request.v1";
  const [first, second] = [crypto.randomUUID(), crypto.randomUUID()];
  const tags = ["tool:request", "profile:main", "Profile:main", "profile:"];
  await context.api.createBreadcrumb({ title: "a", tags, schema_name, context: request(first) });
  ends.push(await answer(first));

  const written = await context.api.createBreadcrumb({
    title: "b", tags: ["tool:request"], schema_name, context: request(second),
  });
  await context.api.updateBreadcrumb(written.id, written.version, { tags: [] }).catch(() => 0);
  ends.push(await answer(second));

  const third = await context.api.createBreadcrumb({ title: "c", tags: ["tool:request"], schema_name, context: request("c") });
  ends.push((await context.api.getBreadcrumb(third.id)).tags);
  return ends;
}
