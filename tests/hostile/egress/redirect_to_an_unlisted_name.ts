/**
 * A redirect to a name that the tool did not list. It must not be resolved, because the name
 * contains data.
 *
 * status: error
 * error_code: PermissionDenied
 * message: permissions.net
 * permissions: {"net": ["api.test:{{port}}"]}
 * never_asked: carried-out.inside.example.com
 */
export async function execute(): Promise<number> {
  return (await fetch("http://api.test:{{port}}/to/302?url=http://carried-out.inside.example.com:{{port}}/")).status;
}
