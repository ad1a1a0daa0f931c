/**
 * The character U+0000 in a key, at which some parsers end a text.
 *
 * status: error
 * error_code: InvalidOutput
 * message: U+0000
 */
export async function execute(): Promise<unknown> {
  return { ["admin\u0000user"]: true };
}
