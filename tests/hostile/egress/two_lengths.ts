/**
 * Responses with two lengths, or with a length and chunks: two parsers of one connection disagree
 * where the next response starts.
 *
 * status: success
 * output: {"smuggled": false}
 * permissions: {"net": ["liar.test:{{liar}}"]}
 * arrived: {"path": "/two-lengths/{{tool}}", "holds": ["GET "]}
 * arrived: {"path": "/both/{{tool}}", "holds": ["GET "]}
 */
export async function execute(): Promise<unknown> {
  let smuggled = false;
  for (const lie of ["two-lengths", "both"]) {
    try {
      const text = await (await fetch(`http://liar.test:{{liar}}/${lie}/{{tool}}`)).text();
      smuggled ||= text !== "first" && text !== "";
      smuggled ||= (await (await fetch("http://liar.test:{{liar}}/honest/{{tool}}")).text()) !== "honest";
    } catch {
      continue;
    }
  }
  return { smuggled };
}
