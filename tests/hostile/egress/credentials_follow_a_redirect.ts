/**
 * A redirect to another origin must not get the headers by which a server identifies its caller.
 *
 * status: success
 * output: {"authorization": false, "cookie": false, "proxy": false}
 * permissions: {"net": ["api.test:{{port}}", "other.test:{{port}}"]}
 * never: carried-along
 */
export async function execute(): Promise<unknown> {
  const token = ["carried", "along"].join("-");
  const headers = { authorization: `Bearer ${token}`, cookie: `session=${token}`, "proxy-authorization": `Basic ${token}` };
  const url = "http://api.test:{{port}}/to/302?url=http://other.test:{{port}}/echo/{{tool}}";
  const seen = (await (await fetch(url, { headers })).json()).headers;
  return { authorization: "authorization" in seen, cookie: "cookie" in seen, proxy: "proxy-authorization" in seen };
}
