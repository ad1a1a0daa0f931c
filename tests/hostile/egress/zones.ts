/**
 * IPv6 addresses with a zone, which some parsers remove and others keep. They come by redirects, so
 * that the gate itself parses them. None of them may be connected to.
 *
 * status: success
 * output: ["refused by the gate"]
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/to/302/{{tool}}/0", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/1", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/2", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/3", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/4", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/5", "holds": ["GET "]}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  const refused = (error: Error) =>
    /^the redirect to .*(invalid IPv6 address|empty host)$/.test(error.message) ? "refused by the gate" : `${error.name}: ${error.message}`;
  for (const [at, host] of ["[fe80::1%25lo]", "[fe80::1%lo]", "[::1%25eth0]", "[v1.fe80::1]", "[::1", "::1"].entries()) {
    const url = `http://api.test:{{port}}/to/302/{{tool}}/${at}?url=http://${host}/`;
    ends.add(await fetch(url).then((answer) => `answered ${answer.url}`, refused));
  }
  return [...ends];
}
