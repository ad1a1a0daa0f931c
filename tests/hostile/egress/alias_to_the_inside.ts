/**
 * A name that is only an alias for a name with an internal address.
 *
 * status: error
 * error_code: PermissionDenied
 * message: non-public
 * permissions: {"net": ["a.alias.example.com:{{port}}"]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://a.alias.example.com:{{port}}/echo/{{tool}}")).status;
}
