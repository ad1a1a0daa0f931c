/**
 * A result one level deeper than allowed, so that with the response around it a parser's own limit
 * is near.
 *
 * status: error
 * error_code: InvalidOutput
 * message: nested too deeply
 */
export async function execute(): Promise<unknown> {
  let nest: unknown = {};
  for (let i = 0; i < 100; i++) nest = { nest };
  return nest;
}
