/**
 * The same in IPv6: loopback, this machine's IPv4 address inside six others, private networks.
 *
 * status: success
 * output: ["inside"]
 * permissions: {"net": true}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  // Refused because of the address, not because a permission is missing.
  const inside = (error: Error) => (/non-public|own machine/.test(error.message) ? "inside" : `${error.name}: ${error.message}`);
  for (const host of ["::1", "::", "::ffff:127.0.0.1", "::ffff:7f00:1", "::ffff:0:127.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1",
    "64:ff9b:1::7f00:1", "2002:7f00:1::", "2001:0:7f00:1::", "fd00::1", "fe80::1", "fec0::1", "ff02::1", "100::1",
    "0:0:0:0:0:ffff:a9fe:a9fe"]) {
    ends.add(await fetch(`http://[${host}]/`).then((answer) => `answered ${answer.url}`, inside));
  }
  return [...ends];
}
