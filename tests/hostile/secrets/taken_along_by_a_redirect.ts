/**
 * The bound host redirects to another one, which the tool can reach. Nothing with a handle is sent
 * along.
 *
 * status: success
 * output: {"header": false, "body": "PermissionDenied"}
 * secrets: [{"name": "ALONG_KEY", "value": "sk-live-along-0123456789", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}", "other.test:{{port}}"]}
 * arrived: {"path": "/to/302/{{tool}}", "holds": ["sk-live-along-0123456789"]}
 * arrived: {"path": "/to/307/{{tool}}", "holds": ["sk-live-along-0123456789"]}
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  const key = context.secrets.ALONG_KEY;
  const to = "?url=http://other.test:{{port}}/echo/{{tool}}";
  const answer = await fetch(`http://api.test:{{port}}/to/302/{{tool}}${to}`, { headers: { "x-api-key": key } });
  const header = "x-api-key" in (await answer.json()).headers;
  const body = await fetch(`http://api.test:{{port}}/to/307/{{tool}}${to}`, { method: "POST", body: `key=${key}` })
    .then((answer) => `answered ${answer.status}`, (error) => error.name);
  return { header, body };
}
