/**
 * Progress from timers, promises and listeners at once, while other ops of the call wait. Those
 * must get their results, and subscribers must see the last progress.
 *
 * status: success
 * output: "seen"
 * progress: {"fraction": 1.0, "message": "the last"}
 * limits: {"timeout_ms": 600000}
 */
export async function execute(_input: unknown, context: any): Promise<string> {
  const target = new EventTarget();
  target.addEventListener("x", () => context.progress(0.5, "from a listener"));
  for (let i = 0; i < 200; i++) {
    setTimeout(() => context.progress(0.1, "from a timer"), i % 20);
    Promise.resolve().then(() => context.progress(0.2, "from a promise"));
    target.dispatchEvent(new Event("x"));
  }
  await new Promise((done) => setTimeout(done, 100));
  context.progress(1, "the last");
  const tag = `request:${context.request.id}`;
  for (;;) {
    const found = await context.api.searchBreadcrumbs({ tag, schema_name: "tool.progress.v1", include_context: true });
    if (found[0]?.context.message === "the last") return "seen";
    await new Promise((done) => setTimeout(done, 50));
  }
}
