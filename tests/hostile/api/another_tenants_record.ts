/**
 * Reads, changes and deletes a record of another tenant by its correct id.
 *
 * status: success
 * output: ["NotFound", "NotFound", "NotFound", 0]
 * never: foreign words
 */
export async function execute(_input: unknown, context: any): Promise<unknown[]> {
  const id = "{{foreign}}";
  const ends: unknown[] = [];
  for (const way of [
    () => context.api.getBreadcrumb(id),
    () => context.api.updateBreadcrumb(id, 1, { title: "taken" }),
    () => context.api.deleteBreadcrumb(id),
  ]) {
    ends.push(await way().then(() => "done", (error: Error) => error.name));
  }
  ends.push((await context.api.searchBreadcrumbs({ tag: "foreign", include_context: true })).length);
  return ends;
}
