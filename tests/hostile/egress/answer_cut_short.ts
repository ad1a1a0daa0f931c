/**
 * A response that announces a thousand bytes and stops after nine. The received part must not count
 * as the whole.
 *
 * status: success
 * output: ["TypeError"]
 * permissions: {"net": ["liar.test:{{liar}}"]}
 * arrived: {"path": "/short/{{tool}}", "holds": ["GET "]}
 * arrived: {"path": "/bad-chunk/{{tool}}", "holds": ["GET "]}
 * arrived: {"path": "/huge-chunk/{{tool}}", "holds": ["GET "]}
 * arrived: {"path": "/not-gzip/{{tool}}", "holds": ["GET "]}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  for (const lie of ["short", "bad-chunk", "huge-chunk", "not-gzip"]) {
    const url = `http://liar.test:{{liar}}/${lie}/{{tool}}`;
    ends.add(await fetch(url).then((answer) => answer.text()).then((text) => `${lie}: ${text}`, (error) => error.name));
  }
  return [...ends];
}
