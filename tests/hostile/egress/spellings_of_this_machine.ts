/**
 * The address of this machine in every spelling that some library accepts: decimal, octal,
 * hexadecimal, short, in letters of other alphabets.
 *
 * status: success
 * output: ["inside"]
 * permissions: {"net": true}
 * never_asked: localhost
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  // Refused because of the address, not because a permission is missing.
  const inside = (error: Error) => (/non-public|own machine/.test(error.message) ? "inside" : `${error.name}: ${error.message}`);
  for (const host of ["127.0.0.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.1", "127.0.0.1.", "①②⑦.0.0.1",
    "127。0。0。1", "0.0.0.0", "0", "127.255.255.254", "localhost", "LOCALHOST.", "ｌｏｃａｌｈｏｓｔ", "%6c%6f%63alhost"]) {
    ends.add(await fetch(`http://${host}/`).then((answer) => `answered ${answer.url}`, inside));
  }
  return [...ends];
}
