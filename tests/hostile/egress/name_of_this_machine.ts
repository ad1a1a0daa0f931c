/**
 * A public name that resolves to this machine, where a server listens on the port that the tool
 * listed.
 *
 * status: error
 * error_code: PermissionDenied
 * message: non-public
 * permissions: {"net": ["trap.inside.example.com:{{port}}"]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://trap.inside.example.com:{{port}}/echo/{{tool}}")).status;
}
