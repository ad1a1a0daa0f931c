/**
 * Private networks and the metadata services of clouds, by address.
 *
 * status: success
 * output: ["inside"]
 * permissions: {"net": true}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  // Refused because of the address, not because a permission is missing.
  const inside = (error: Error) => (/non-public|own machine/.test(error.message) ? "inside" : `${error.name}: ${error.message}`);
  for (const host of ["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.169.254", "169.254.170.2", "100.64.0.1",
    "100.100.100.200", "168.63.129.16", "192.0.0.192", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "0.1.2.3"]) {
    ends.add(await fetch(`http://${host}/latest/meta-data/`).then((answer) => `answered ${answer.url}`, inside));
  }
  return [...ends];
}
