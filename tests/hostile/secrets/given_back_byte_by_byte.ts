/**
 * The server returns the value one byte at a time, each in a separate piece.
 *
 * status: success
 * output: "[secret PIECES_KEY]"
 * secrets: [{"name": "PIECES_KEY", "value": "sk-live-pieces-0123456789", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/back/pieces/{{tool}}", "holds": ["Bearer sk-live-pieces-0123456789"]}
 */
export async function execute(_input: unknown, context: any): Promise<string> {
  const headers = { authorization: `Bearer ${context.secrets.PIECES_KEY}` };
  const answer = await fetch("http://api.test:{{port}}/back/pieces/{{tool}}", { headers });
  let text = "";
  const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
  for (let step = await reader.read(); !step.done; step = await reader.read()) text += step.value;
  return text;
}
