/**
 * Every comparison that a check in JavaScript could use is replaced by one that returns true.
 *
 * status: error
 * error_code: PermissionDenied
 * message: permissions.net
 * permissions: {"net": ["api.test:{{port}}"]}
 * never_asked: compared.inside.example.com
 */
export async function execute(): Promise<unknown> {
  const yes = () => true;
  for (const name of ["includes", "some", "every"]) (Array.prototype as any)[name] = yes;
  for (const name of ["startsWith", "endsWith", "includes"]) (String.prototype as any)[name] = yes;
  (String.prototype as any).toLowerCase = () => "api.test";
  (RegExp.prototype as any).test = yes;
  (RegExp.prototype as any).exec = () => ["api.test"];
  for (const name of ["has", "get"]) {
    (Map.prototype as any)[name] = yes;
    (Set.prototype as any)[name] = yes;
    (WeakMap.prototype as any)[name] = yes;
  }
  (Object as any).is = yes;
  for (const name of ["host", "hostname", "port", "origin"]) {
    Object.defineProperty(URL.prototype, name, { get: () => (name === "port" ? "{{port}}" : "api.test") });
  }
  return (await fetch("http://compared.inside.example.com:{{port}}/")).status;
}
