/**
 * A DNS server that answers another question, returns circular aliases, truncates its answer,
 * fails, or returns nothing. None of these may lead to a connection.
 *
 * status: success
 * output: ["PermissionDenied or TypeError"]
 * permissions: {"net": ["*.example.com:{{port}}"]}
 * limits: {"timeout_ms": 90000}
 * never_reached: /echo/{{tool}}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  for (const kind of ["other", "circle", "truncated", "failing", "unknown"]) {
    const url = `http://a.${kind}.example.com:{{port}}/echo/{{tool}}`;
    const end = await fetch(url).then((answer) => `answered ${answer.url}`, (error) => error.name);
    ends.add(/^(PermissionDenied|TypeError)$/.test(end) ? "PermissionDenied or TypeError" : `${kind}: ${end}`);
  }
  return [...ends];
}
