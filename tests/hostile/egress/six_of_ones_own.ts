/**
 * Names with the IPv6 addresses of this machine, of its link and of private networks.
 *
 * status: success
 * output: ["inside"]
 * permissions: {"net": ["*.example.com:{{port}}"]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  // Refused because of the address, not because a permission is missing.
  const inside = (error: Error) => (/non-public|own machine/.test(error.message) ? "inside" : `${error.name}: ${error.message}`);
  for (const kind of ["six", "unique", "link"]) {
    const url = `http://a.${kind}.example.com:{{port}}/echo/{{tool}}`;
    ends.add(await fetch(url).then((answer) => `answered ${answer.url}`, inside));
  }
  return [...ends];
}
