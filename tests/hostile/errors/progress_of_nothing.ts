/**
 * Invalid progress: values that are not numbers, objects that run code when they are read, texts
 * with terminal escapes.
 *
 * status: success
 * output: ["TypeError", "TypeError", "TypeError", "TypeError", 0]
 * progress: {"fraction": 1.0, "message": "[31mred  and more  [2J"}
 */
export async function execute(_input: unknown, context: any): Promise<unknown[]> {
  let asked = 0;
  const sly = { valueOf: () => ++asked, toString: () => `${++asked}`, toJSON: () => ++asked };
  const ends: unknown[] = [];
  for (const [fraction, message] of [[sly, "x"], ["0.5", "x"], [0.5, sly], [10n, "x"]]) {
    try {
      context.progress(fraction, message);
      ends.push("taken");
    } catch (error) {
      ends.push((error as Error).name);
    }
  }
  ends.push(asked);
  context.progress(Infinity, "not yet");
  context.progress(Number.MAX_VALUE, "\u001b[31mred\r\nand more\u0000\u001b[2J");
  const tag = `request:${context.request.id}`;
  for (;;) {
    const found = await context.api.searchBreadcrumbs({ tag, schema_name: "tool.progress.v1", include_context: true });
    if (found[0]?.context.fraction === 1) return ends;
    await new Promise((done) => setTimeout(done, 50));
  }
}
