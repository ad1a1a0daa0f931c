/**
 * The server returns the value as base64 in three alignments, as base64url, percent-encoded and in
 * JSON. A tool that decodes them must find nothing.
 *
 * status: success
 * output: {"found": []}
 * secrets: [{"name": "BACK_KEY", "value": "sk/live+back=\"0123456789\"", "hosts": ["api.test:{{port}}"]}]
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/back/plain/{{tool}}", "holds": ["Bearer sk/live+back=\"0123456789\""]}
 * arrived: {"path": "/back/base64/{{tool}}", "holds": ["Bearer sk/live"]}
 * arrived: {"path": "/back/base64-shifted/{{tool}}", "holds": ["Bearer sk/live"]}
 * arrived: {"path": "/back/base64url/{{tool}}", "holds": ["Bearer sk/live"]}
 * arrived: {"path": "/back/percent/{{tool}}", "holds": ["Bearer sk/live"]}
 * arrived: {"path": "/back/json/{{tool}}", "holds": ["Bearer sk/live"]}
 */
export async function execute(_input: unknown, context: any): Promise<unknown> {
  const found: string[] = [];
  for (const form of ["plain", "base64", "base64-shifted", "base64url", "percent", "json"]) {
    const headers = { authorization: `Bearer ${context.secrets.BACK_KEY}` };
    const text = await (await fetch(`http://api.test:{{port}}/back/${form}/{{tool}}`, { headers })).text();
    const readings = [text];
    for (const part of text.split(/[^A-Za-z0-9+/=_-]+/)) {
      try {
        readings.push(atob(part.replaceAll("-", "+").replaceAll("_", "/")));
      } catch {
        continue;
      }
    }
    try {
      readings.push(decodeURIComponent(text.replaceAll("+", " ")));
    } catch {
      // Not percent-encoded text.
    }
    if (readings.some((one) => /live.{1,3}back/.test(one))) found.push(form);
  }
  return { found };
}
