/**
 * Fields with the names of permissions on the prototype of all objects. Code that checks an object
 * that it did not create itself finds them there.
 *
 * status: error
 * error_code: PermissionDenied
 * message: permissions.net
 * never_asked: polluted.inside.example.com
 */
export async function execute(): Promise<unknown> {
  const root: any = Object.prototype;
  for (const name of ["net", "permissions", "read", "allow", "granted", "All", "Listed", "hosts", "allowed_private", "redirect"]) {
    root[name] = name === "permissions" ? { net: true } : true;
  }
  delete root.redirect;
  return (await fetch("http://polluted.inside.example.com/")).status;
}
