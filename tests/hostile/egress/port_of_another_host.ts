/**
 * A port that is allowed for one host, used on another host, and a port that is not allowed on the
 * first.
 *
 * status: success
 * output: ["PermissionDenied", "PermissionDenied", "PermissionDenied", 200]
 * permissions: {"net": ["api.test:{{port}}", "plain.example.com"]}
 * never_asked: plain.example.com
 */
export async function execute(): Promise<unknown[]> {
  const ends: unknown[] = [];
  for (const url of ["http://plain.example.com:{{port}}/", "http://api.test/", "https://api.test:1/", "http://api.test:{{port}}/echo/x"]) {
    ends.push(await fetch(url).then((answer) => answer.status, (error) => error.name));
  }
  return ends;
}
