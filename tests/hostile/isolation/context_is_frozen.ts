/**
 * Every part of the context that execute gets is changed: by assignment, by definition, by another
 * prototype.
 *
 * status: success
 * output: 0
 */
export async function execute(_input: unknown, context: any): Promise<number> {
  let changed = 0;
  for (const part of [context, context.api, context.request, context.secrets]) {
    for (const change of [
      () => (part.extra = 1),
      () => Object.defineProperty(part, "id", { value: "mine" }),
      () => Object.setPrototypeOf(part, { id: "mine" }),
      () => { for (const key of Object.keys(part)) delete part[key]; part.none = 1; },
    ]) {
      try {
        change();
        changed += 1;
      } catch {
        continue;
      }
    }
  }
  return changed;
}
