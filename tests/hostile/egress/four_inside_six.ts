/**
 * Names with IPv6 addresses that contain this machine's IPv4 address: mapped, compatible,
 * translated, tunnelled.
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
  for (const kind of ["mapped", "compatible", "nat64", "localnat64", "sixtofour", "teredo"]) {
    const url = `http://a.${kind}.example.com:{{port}}/echo/{{tool}}`;
    ends.add(await fetch(url).then((answer) => `answered ${answer.url}`, inside));
  }
  return [...ends];
}
