/**
 * A field on the prototype of all objects forges a message to the tool's own scripts, so that every
 * result looks like a refusal or every refusal like a result. Nothing outside the isolate may
 * change with it.
 *
 * status: success
 * output: {"second": "PermissionDenied"}
 * permissions: {"net": ["api.test:{{port}}"]}
 * never_asked: forged.inside.example.com
 */
export async function execute(): Promise<unknown> {
  Object.defineProperty(Object.prototype, "ok", {
    configurable: true,
    get: () => ({ status: 200, status_text: "", headers: [], url: "http://forged.inside.example.com/", redirected: false }),
  });
  const second = await fetch("http://forged.inside.example.com:{{port}}/").then(
    async (answer) => `${answer.status} ${await answer.text()}`,
    (error) => error.name,
  );
  delete (Object.prototype as any).ok;
  return { second };
}
