/**
 * A handle from an earlier call, of the same tool with the same secret. It is not valid any more.
 *
 * status: success
 * isolation: tool
 * permissions: {"net": ["api.test:{{port}}"]}
 * secrets: [{"name": "STALE_KEY", "value": "sk-live-stale-0123456789", "hosts": ["api.test:{{port}}"]}]
 * calls: [{"output": "kept"}, {"output": "not filled"}]
 */
let kept: string | undefined;

export async function execute(_input: unknown, context: any): Promise<string> {
  if (kept === undefined) {
    kept = context.secrets.STALE_KEY as string;
    return "kept";
  }
  if (kept === context.secrets.STALE_KEY) return "the same handle again";
  const headers = { authorization: `Bearer ${kept}` };
  const told = await fetch("http://api.test:{{port}}/echo/{{tool}}", { headers }).then(
    async (answer) => (await answer.json()).headers.authorization as string,
    (error) => String(error.name),
  );
  return told.includes("[secret") ? `filled: ${told}` : "not filled";
}
