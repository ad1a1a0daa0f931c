/**
 * A name with a public address that is the runner's own: what listens there thinks that it is asked from inside.
 *
 * status: error
 * error_code: PermissionDenied
 * message: own machine
 * permissions: {"net": ["a.own.example.com:{{port}}"]}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://a.own.example.com:{{port}}/echo/{{tool}}")).status;
}
