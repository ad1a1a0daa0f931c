/**
 * A name with a public address that is the runner's own: a server there takes the request for an
 * internal one.
 *
 * status: error
 * error_code: PermissionDenied
 * message: own machine
 * permissions: {"net": ["a.own.example.com:{{port}}"]}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://a.own.example.com:{{port}}/echo/{{tool}}")).status;
}
