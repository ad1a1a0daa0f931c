/**
 * All public hosts are allowed, on the ports of the web, but not on those of mail, shells and
 * databases.
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
