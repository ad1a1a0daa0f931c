/**
 * A name with two addresses, a public one and this machine's. A gate that checks only the first, or
 * chooses later, is bypassed.
 *
 * status: error
 * error_code: PermissionDenied
 * message: non-public
 * permissions: {"net": ["a.mixed.example.com:{{port}}"]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(): Promise<number> {
  return (await fetch("http://a.mixed.example.com:{{port}}/echo/{{tool}}")).status;
}
