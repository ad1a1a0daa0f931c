/**
 * In every way in which a tool can get a secret, it gets a handle, which contains nothing of the
 * value.
 *
 * status: success
 * output: {"handles": true, "same_kind": true}
 * secrets: [{"name": "HANDLE_KEY", "value": "sk-live-4f9d2c7b81aa", "hosts": ["api.test:{{port}}"]}]
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  const given: string = context.secrets.HANDLE_KEY;
  const asked = await context.api.getSecret("HANDLE_KEY", "to read it");
  const shape = /^rcrt_secret_HANDLE_KEY_[0-9a-f]{32}$/;
  console.log(given, asked, context);
  const handles = [given, asked, asked.value, `${asked}`].every((one) => shape.test(one));
  return { handles, same_kind: typeof given === typeof asked.value };
}
