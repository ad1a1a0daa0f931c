/**
 * A secret that the tool can read goes into its progress, where every subscriber would see it:
 * plain, and in the forms in which services encode it.
 *
 * status: success
 * output: true
 * secrets: [{"name": "PROGRESS_KEY", "value": "swordfish/of+progress", "readable": true}]
 * never: swordfish
 * progress: {"message": "the key: [secret PROGRESS_KEY], [secret PROGRESS_KEY], [secret PROGRESS_KEY]"}
 */
export async function execute(_input: unknown, context: any): Promise<boolean> {
  const key = context.secrets.PROGRESS_KEY;
  context.progress(0.5, `the key: ${key}, ${btoa(key)}, ${encodeURIComponent(key)}`);
  const tag = `request:${context.request.id}`;
  for (;;) {
    const found = await context.api.searchBreadcrumbs({ tag, schema_name: "tool.progress.v1" });
    if (found.length > 0) return true;
    await new Promise((done) => setTimeout(done, 50));
  }
}
