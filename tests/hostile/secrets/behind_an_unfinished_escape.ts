/**
 * The start of an escape directly before the handle, so that a parser of the request consumes the
 * first characters of the value, and the rest that a server returns is not recognized by its form.
 *
 * status: success
 * output: ["PermissionDenied"]
 * secrets: [{"name": "BEHIND_KEY", "value": "a1/bc+DE=fg0123456789\"xyz", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(_input: unknown, context: any): Promise<string[]> {
  const key: string = context.secrets.BEHIND_KEY;
  const at = "http://api.test:{{port}}/echo/{{tool}}";
  const post = (type: string, body: string) => fetch(at, { method: "POST", headers: { "content-type": type }, body });
  const tries: (() => Promise<Response>)[] = [
    ...["%", "%4"].map((begun) => () => fetch(`${at}?key=${begun}${key}`)),
    ...["%", "%4"].map((begun) => () => post("application/x-www-form-urlencoded", `key=${begun}${key}`)),
    ...["\\", "\\u", "\\u0", "\\u00", "\\u004"].map((begun) => () => post("application/json", `{"key":"${begun}${key}"}`)),
  ];
  const ends = new Set<string>();
  for (const one of tries) {
    ends.add(await one().then((answer) => `answered ${answer.status}`, (error) => (/"BEHIND_KEY"/.test(error.message) ? error.name : error.message)));
  }
  return [...ends];
}
