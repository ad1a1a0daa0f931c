/**
 * A redirect whose place goes on in a second line, as old servers fold their headers: two readers see two places.
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
