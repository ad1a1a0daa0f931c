/**
 * Line breaks in names and values of headers, in the method and in the URL. Each would start a
 * header or a request of the attacker.
 *
 * status: success
 * output: {"ended": ["TypeError"], "injected": false}
 * permissions: {"net": ["api.test:{{port}}"]}
 */
export async function execute(): Promise<unknown> {
  const url = "http://api.test:{{port}}/echo/{{tool}}";
  const ended = new Set<string>();
  const tries: [string, RequestInit][] = [
    [url, { headers: { "x-a": "b\r\nx-injected: yes" } }],
    [url, { headers: { "x-a": "b\nx-injected: yes" } }],
    [url, { headers: { "x-a: b\r\nx-injected": "yes" } }],
    [url, { headers: [["x-a", "b\u0000c"]] }],
    [url, { headers: [["x-a", "\u010d\u010ax-injected: yes"]] }],
    [url, { method: "GET /other HTTP/1.1\r\nx-injected: yes\r\n\r\n" }],
    [url, { method: "CONNECT" }],
    [url, { method: "TRACE" }],
  ];
  for (const [address, init] of tries) {
    ended.add(await fetch(address, init).then((answer) => `answered ${answer.status}`, (error) => error.name));
  }
  const broken = `${url}?a=b\r\nx-injected: yes`;
  const seen = await (await fetch(broken)).json();
  return { ended: [...ended], injected: "x-injected" in seen.headers };
}
