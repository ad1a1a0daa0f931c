/**
 * A redirect whose location continues on a second line, as old servers fold headers: two parsers
 * see two locations.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: invalid HTTP header
 * permissions: {"net": ["api.test:{{port}}", "liar.test:{{liar}}"]}
 * arrived: {"path": "/split-redirect/{{tool}}", "holds": ["GET "]}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://liar.test:{{liar}}/split-redirect/{{tool}}")).status;
}
