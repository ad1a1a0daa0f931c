/**
 * A tool's record is deleted and created again with the same name. The grant belonged to the old
 * record, not to the name.
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
