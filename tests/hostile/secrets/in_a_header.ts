/**
 * The honest use, and the server's echo of it: the value arrives at the host that it is bound to,
 * and does not come back.
 *
 * status: success
 * output: {"authorization": "Bearer [secret HEADER_KEY]", "basic": "Basic dXNlcjp[secret HEADER_KEY]"}
 * secrets: [{"name": "HEADER_KEY", "value": "sk-live-header-77e1c0ffee", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/echo/{{tool}}", "holds": ["authorization: Bearer sk-live-header-77e1c0ffee"]}
 * arrived: {"path": "/echo/{{tool}}/basic", "holds": ["authorization: Basic dXNlcjpzay1saXZlLWhlYWRlci03N2UxYzBmZmVl"]}
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  const key = context.secrets.HEADER_KEY;
  const ask = async (path: string, authorization: string) => {
    const answer = await fetch(`http://api.test:{{port}}/echo/{{tool}}${path}`, { headers: { authorization } });
    return (await answer.json()).headers.authorization as string;
  };
  const basic = await ask("/basic", `Basic ${btoa(`user:${key}`)}`);
  return { authorization: await ask("", `Bearer ${key}`), basic };
}
