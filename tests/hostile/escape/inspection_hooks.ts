/**
 * The printer of values calls functions that the printed value provides, and passes them its own
 * helpers.
 *
 * status: success
 * output: []
 */
export async function execute(): Promise<string[]> {
  const found = new Set<string>();
  const hook = (...given: unknown[]) => {
    const queue = [...given];
    const seen = new Set<unknown>();
    for (let value = queue.pop(); queue.length > 0 || value !== undefined; value = queue.pop()) {
      if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) continue;
      seen.add(value);
      if (seen.size > 20_000) break;
      for (const key of Reflect.ownKeys(value)) {
        if (/^(op_|ops$|core$|Deno$|internals$|primordials$)/.test(String(key))) found.add(String(key));
        queue.push(Reflect.getOwnPropertyDescriptor(value, key)?.value);
      }
    }
    return "x";
  };
  for (const name of ["Deno.customInspect", "Deno.privateCustomInspect", "nodejs.util.inspect.custom"]) {
    console.log({ [Symbol.for(name)]: hook });
  }
  return [...found];
}
