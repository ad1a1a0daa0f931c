/**
 * What a server says about the value in its own words, and what the tool makes of a handle, as a result.
 *
 * status: success
 * output: {"told": "[secret RESULT_KEY] and [secret RESULT_KEY]", "key_of_object": 1}
 * secrets: [{"name": "RESULT_KEY", "value": "sk-live-result-0123456789", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/back/plain/{{tool}}", "holds": ["Bearer sk-live-result-0123456789 and sk-live-result-0123456789"]}
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  const key = context.secrets.RESULT_KEY;
  const headers = { authorization: `Bearer ${key} and ${key}` };
  const told = await (await fetch("http://api.test:{{port}}/back/plain/{{tool}}", { headers })).text();
  return { told, key_of_object: Object.keys({ [told]: 1 }).length };
}
