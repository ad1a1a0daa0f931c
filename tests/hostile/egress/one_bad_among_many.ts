/**
 * Thirty public addresses and then loopback, which a check of only the first addresses misses.
 *
 * status: error
 * error_code: PermissionDenied
 * message: non-public
 * permissions: {"net": ["a.many.example.com:{{port}}"]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://a.many.example.com:{{port}}/echo/{{tool}}")).status;
}
