/**
 * A cookie that a server sets must not be sent back by a later request, of this call or of another
 * tool's.
 *
 * status: success
 * output: {"cookie": false}
 * times: 2
 * permissions: {"net": ["api.test:{{port}}"]}
 */
export async function execute(): Promise<unknown> {
  await (await fetch("http://api.test:{{port}}/cookie", { credentials: "include" })).text();
  const seen = (await (await fetch("http://api.test:{{port}}/echo/{{tool}}", { credentials: "include" })).json()).headers;
  return { cookie: "cookie" in seen };
}
