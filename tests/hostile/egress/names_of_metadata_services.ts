/**
 * Names that resolve to the metadata services of three clouds, to this network and to everybody.
 *
 * status: success
 * output: ["inside"]
 * permissions: {"net": ["*.example.com"]}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  // Refused for the address, not for want of a permission.
  const inside = (error: Error) => (/non-public|own machine/.test(error.message) ? "inside" : `${error.name}: ${error.message}`);
  for (const kind of ["metadata", "azure", "shared", "zero", "broadcast"]) {
    ends.add(await fetch(`http://a.${kind}.example.com/`).then((answer) => `answered ${answer.url}`, inside));
  }
  return [...ends];
}
