/**
 * A name that is public in IPv6 and this machine in IPv4: the check uses one family, the connection
 * the other.
 *
 * status: error
 * error_code: PermissionDenied
 * message: non-public
 * permissions: {"net": ["a.family.example.com:{{port}}"]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://a.family.example.com:{{port}}/echo/{{tool}}")).status;
}
