/**
 * A result that is a million arrays deep: whoever writes or reads it by recursion falls over.
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
