/**
 * A toJSON on the prototype of all objects changes every message to the runner while it is
 * serialized. The runner must check what arrives, not what the worker's scripts meant.
 *
 * status: error
 * error_code: PermissionDenied
 * message: permissions.net
 * permissions: {"net": ["api.test:{{port}}"]}
 * never_asked: rewritten.inside.example.com
 */
export async function execute(): Promise<unknown> {
  Object.defineProperty(Object.prototype, "toJSON", {
    value(this: any) {
      return "url" in this ? { ...this, url: "http://rewritten.inside.example.com:{{port}}/" } : this;
    },
  });
  const answer = await fetch("http://api.test:{{port}}/echo/{{tool}}");
  const at = new URL(answer.url).hostname;
  // Scripts that cannot be attacked this way send the original request.
  if (at === "api.test") return (await fetch("http://rewritten.inside.example.com:{{port}}/")).status;
  return at;
}
