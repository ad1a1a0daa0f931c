/**
 * Five thousand headers in one response.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: message head is too large
 * permissions: {"net": ["liar.test:{{liar}}"]}
 * arrived: {"path": "/many-headers/{{tool}}", "holds": ["GET "]}
 */
export async function execute(): Promise<number> {
  return [...(await fetch("http://liar.test:{{liar}}/many-headers/{{tool}}")).headers].length;
}
