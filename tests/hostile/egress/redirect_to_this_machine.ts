/**
 * An allowed server redirects to this machine, by name and by address, with each redirect status.
 *
 * status: success
 * output: ["PermissionDenied"]
 * permissions: {"net": ["api.test:{{port}}", "trap.inside.example.com:{{port}}"]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  for (const status of [301, 302, 303, 307, 308]) {
    for (const host of ["trap.inside.example.com", "127.0.0.1", "2130706433", "[::1]", "[::ffff:127.0.0.1]", "localhost"]) {
      const url = `http://api.test:{{port}}/to/${status}?url=http://${host}:{{port}}/echo/{{tool}}`;
      ends.add(await fetch(url).then((answer) => `answered ${answer.url}`, (error) => error.name));
    }
  }
  return [...ends];
}
