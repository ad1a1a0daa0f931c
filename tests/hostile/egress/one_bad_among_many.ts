/**
 * Thirty public addresses and loopback as the last, beyond what a careless check looks at.
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
