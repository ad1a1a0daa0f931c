/**
 * The server redirects to a URL that contains the value. The tool reads URLs, headers and errors.
 *
 * status: success
 * output: {"url": "http://api.test:{{port}}/echo/{{tool}}?told=[secret]", "location": true, "error": true}
 * secrets: [{"name": "MOVED_KEY", "value": "sklivemoved0123456789", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/back/redirect/{{tool}}", "holds": ["Bearer sklivemoved0123456789"]}
 * arrived: {"path": "/echo/{{tool}}", "holds": ["told="]}
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  const headers = { authorization: `Bearer ${context.secrets.MOVED_KEY}` };
  const url = "http://api.test:{{port}}/back/redirect/{{tool}}";
  const followed = await fetch(url, { headers });
  const manual = await fetch(url, { headers, redirect: "manual" });
  const error = await fetch(url, { headers, redirect: "error" }).then(() => "none", (error) => String(error.message));
  const text = await followed.text();
  return {
    url: decodeURIComponent(followed.url).replace("[secret MOVED_KEY]", "[secret]"),
    location: !/sklivemoved/.test(manual.headers.get("location") ?? ""),
    error: !/sklivemoved/.test(error) && !/sklivemoved/.test(text),
  };
}
