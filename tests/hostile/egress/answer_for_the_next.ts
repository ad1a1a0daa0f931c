/**
 * A server sends a second response after the first, so that the next request on the connection gets
 * it.
 *
 * status: success
 * output: ["first", "honest"]
 * times: 3
 * permissions: {"net": ["liar.test:{{liar}}"]}
 */
export async function execute(): Promise<string[]> {
  const first = await (await fetch("http://liar.test:{{liar}}/poison/{{tool}}")).text();
  const next = await (await fetch("http://liar.test:{{liar}}/honest/{{tool}}")).text();
  return [first, next];
}
