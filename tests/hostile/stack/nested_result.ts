/**
 * A result with a depth of a million arrays: every recursive writer or parser overflows.
 *
 * status: error
 * error_code: InvalidOutput
 * message: nested too deeply
 */
export async function execute(): Promise<unknown> {
  let nest: unknown = null;
  for (let i = 0; i < 1_000_000; i++) nest = [nest];
  return nest;
}
