/**
 * https to a server that speaks plain text. The request must not be sent unencrypted when the
 * handshake fails.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: TypeError
 * message: received corrupt message
 * permissions: {"net": ["api.test:{{port}}"]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(): Promise<number> {
  return (await fetch("https://api.test:{{port}}/echo/{{tool}}", { headers: { authorization: "Bearer x" } })).status;
}
