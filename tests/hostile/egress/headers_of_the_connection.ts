/**
 * Headers that belong to the connection and not to the tool: another host on the same server, a
 * false length, a request inside the request.
 *
 * status: success
 * output: {"host": "api.test:{{port}}", "left": []}
 * permissions: {"net": ["api.test:{{port}}"]}
 */
export async function execute(): Promise<unknown> {
  const headers = new Headers();
  const set = [["host", "internal.service"], ["content-length", "3"], ["transfer-encoding", "chunked"], ["connection", "close, x-mine"],
    ["upgrade", "h2c"], ["te", "trailers"], ["trailer", "x-mine"], ["proxy-authorization", "Basic eDp4"], ["proxy-connection", "keep-alive"],
    ["keep-alive", "timeout=999"], ["expect", "100-continue"], ["http2-settings", "AAMAAABk"], ["via", "1.1 me"]];
  for (const [name, value] of set) {
    try {
      headers.append(name, value);
    } catch {
      continue;
    }
  }
  const url = "http://api.test:{{port}}/echo/{{tool}}";
  const seen = (await (await fetch(url, { method: "POST", headers, body: "five5" })).json()).headers;
  const left = set.map(([name, value]) => [name, value]).filter(([name, value]) => name !== "host" && seen[name] === value);
  return { host: seen.host, left: left.map(([name]) => name) };
}
