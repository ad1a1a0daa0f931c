/**
 * A tool's record is deleted and written anew, with the same name: the grant was the old record's and not the name's.
 *
 * status: success
 * secrets: [{"name": "INHERITED_KEY", "value": "sk-live-inherited-123456", "hosts": ["api.test:{{port}}"]}]
 * calls: [
 *   {"output": "handle"},
 *   {"rewritten": true, "error_code": "PermissionDenied", "message": ["INHERITED_KEY"]}]
 */
export async function execute(_input: unknown, context: any): Promise<string> {
  return context.secrets.INHERITED_KEY ? "handle" : "nothing";
}
