/**
 * A tool that names a secret of the tenant in required_secrets. Its examples see a made-up value,
 * and a call is refused until a curator grants the secret.
 *
 * status: steps
 * tools: 1
 * secrets: [{"name": "AUTHORED_KEY", "value": "sk-live-authored-445566", "hosts": ["api.test:{{port}}"], "granted": false}]
 * examples: [{"description": "Made up", "input": {}, "output": "example-AUTHORED_KEY"}]
 * steps: [
 *   {"create": {}, "expect": {"status": "created", "validation": {"warnings": [{"rule": "secret-grant"}]}}},
 *   {"call": "{{tool}}", "expect": {"status": "error", "error_code": "PermissionDenied"}}
 *   ]
 */
export async function execute(_input: unknown, context: any): Promise<string> {
  return String(context.secrets.AUTHORED_KEY);
}
