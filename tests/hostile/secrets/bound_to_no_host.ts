/**
 * A secret without a bound host is never sent, however wide the tool's permissions are.
 *
 * status: error
 * error_code: PermissionDenied
 * message: LOOSE_KEY
 * secrets: [{"name": "LOOSE_KEY", "value": "sk-live-loose-1234567890"}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(_input: unknown, context: any): Promise<number> {
  return (await fetch(`http://api.test:{{port}}/echo/{{tool}}?key=${context.secrets.LOOSE_KEY}`)).status;
}
