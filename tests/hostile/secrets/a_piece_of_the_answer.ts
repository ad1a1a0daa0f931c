/**
 * A range request for a piece of a response, in which the piece of the value is too small to be
 * recognized. A call with secrets must not send range requests.
 *
 * status: success
 * output: ["accept", "accept-encoding", "authorization", "host", "user-agent"]
 * secrets: [{"name": "PIECE_KEY", "value": "sk-live-piece-0123456789", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/echo/{{tool}}", "holds": ["authorization: Bearer sk-live-piece-0123456789"]}
 */
export async function execute(_input: unknown, context: any): Promise<string[]> {
  const headers = { authorization: `Bearer ${context.secrets.PIECE_KEY}`, range: "bytes=3-6", "if-range": '"x"' };
  const answer = await fetch("http://api.test:{{port}}/echo/{{tool}}", { headers });
  return Object.keys((await answer.json()).headers).sort();
}
