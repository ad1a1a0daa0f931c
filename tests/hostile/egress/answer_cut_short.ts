/**
 * An answer that promises a thousand bytes and ends after nine: what came must not be taken for the whole.
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
