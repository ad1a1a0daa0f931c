/**
 * The handle in the path, before the host, in the name of a header, in the method: places that end up in logs.
 *
 * status: success
 * output: {"path": "PermissionDenied, PLACED_KEY", "user": "TypeError", "header": "PermissionDenied, PLACED_KEY", "method": "PermissionDenied, PLACED_KEY"}
 * secrets: [{"name": "PLACED_KEY", "value": "sk-live-placed-0987654321", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  const key: string = context.secrets.PLACED_KEY;
  const end = async (url: string, init: RequestInit = {}) =>
    fetch(url, init).then((answer) => `answered ${answer.status}`, (error) => error.name + (/"PLACED_KEY"/.test(error.message) ? ", PLACED_KEY" : ""));
  return {
    path: await end(`http://api.test:{{port}}/echo/{{tool}}/${key}`),
    user: await end(`http://${key}@api.test:{{port}}/echo/{{tool}}`).catch((error) => error.name),
    header: await end("http://api.test:{{port}}/echo/{{tool}}", { headers: { [key]: "x" } }),
    method: await end("http://api.test:{{port}}/echo/{{tool}}", { method: key }),
  };
}
