/**
 * A tool names a secret in its own definition without a grant.
 *
 * status: error
 * error_code: PermissionDenied
 * message: UNGRANTED_KEY
 * message: grant
 * secrets: [{"name": "UNGRANTED_KEY", "value": "sk-live-ungranted-123456", "hosts": ["api.test:{{port}}"], "granted": false}]
 */
export async function execute(_input: unknown, context: any): Promise<string> {
  return context.secrets.UNGRANTED_KEY;
}
