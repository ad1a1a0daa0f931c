/**
 * Names that resolve to the metadata services of three clouds, to this network and to the broadcast
 * address.
 *
 * status: success
 * output: ["inside"]
 * permissions: {"net": ["*.example.com"]}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  // Refused because of the address, not because a permission is missing.
  const inside = (error: Error) => (/non-public|own machine/.test(error.message) ? "inside" : `${error.name}: ${error.message}`);
  for (const kind of ["metadata", "azure", "shared", "zero", "broadcast"]) {
    ends.add(await fetch(`http://a.${kind}.example.com/`).then((answer) => `answered ${answer.url}`, inside));
  }
  return [...ends];
}
