/**
 * A server that redirects to itself endlessly.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: redirects
 * permissions: {"net": ["api.test:{{port}}"]}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://api.test:{{port}}/loop/{{tool}}/0")).status;
}
