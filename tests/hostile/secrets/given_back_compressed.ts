/**
 * The server returns the value in a header, and in a compressed body, in which its bytes are not
 * visible.
 *
 * status: success
 * output: ["[secret PACKED_KEY]", "[secret PACKED_KEY]"]
 * secrets: [{"name": "PACKED_KEY", "value": "sk-live-packed-0123456789", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/back/gzip/{{tool}}", "holds": ["Bearer sk-live-packed-0123456789"]}
 * arrived: {"path": "/back/header/{{tool}}", "holds": ["Bearer sk-live-packed-0123456789"]}
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  const headers = { authorization: `Bearer ${context.secrets.PACKED_KEY}` };
  const packed = await (await fetch("http://api.test:{{port}}/back/gzip/{{tool}}", { headers })).text();
  return [packed, (await fetch("http://api.test:{{port}}/back/header/{{tool}}", { headers })).headers.get("x-told")];
}
