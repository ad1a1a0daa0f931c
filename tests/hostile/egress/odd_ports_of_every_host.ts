/**
 * Every public host is allowed, and so the ports of the web: not those of mail, of shells and of databases.
 *
 * status: success
 * output: ["PermissionDenied", "PermissionDenied", "PermissionDenied", "PermissionDenied"]
 * permissions: {"net": true}
 * never_asked: ports.inside.example.com
 */
export async function execute(): Promise<string[]> {
  const ends: string[] = [];
  for (const port of [25, 22, 5432, 8080]) {
    ends.push(await fetch(`http://ports.inside.example.com:${port}/`).then(() => "answered", (error) => error.name));
  }
  return ends;
}
