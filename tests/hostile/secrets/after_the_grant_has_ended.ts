/**
 * A grant is revoked while the tool's globals still have the handle of its last call. It sends
 * nothing more.
 *
 * status: success
 * isolation: tool
 * secrets: [{"name": "REVOKED_KEY", "value": "sk-live-revoked-0123456789", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/echo/{{tool}}/1", "holds": ["authorization: Bearer sk-live-revoked-0123456789"]}
 * arrived: {"path": "/echo/{{tool}}/2", "holds": ["authorization: Bearer sk-live-revoked-0123456789"]}
 * never_reached: /echo/{{tool}}/3
 * calls: [
 *   {"input": {"at": 1}, "output": 1},
 *   {"input": {"at": 2}, "output": 2},
 *   {"input": {"at": 3}, "revoked": true, "error_code": "PermissionDenied", "message": ["REVOKED_KEY"]}]
 */
const kept: string[] = [];

export async function execute(input: { at: number }, context: any): Promise<number> {
  if (context.secrets.REVOKED_KEY) kept.push(context.secrets.REVOKED_KEY);
  const headers = { authorization: `Bearer ${kept.at(-1)}` };
  await fetch(`http://api.test:{{port}}/echo/{{tool}}/${input.at}`, { headers });
  return kept.length;
}
