/**
 * The platform's objects store their inner state under symbols that reflection finds. A request
 * whose inner URL is changed after its check must still be checked by the gate.
 *
 * status: success
 * output: ["PermissionDenied"]
 * permissions: {"net": ["api.test:{{port}}"]}
 * never_asked: inner.inside.example.com
 */
export async function execute(): Promise<string[]> {
  const target = "http://inner.inside.example.com:{{port}}/{{tool}}";
  const request: any = new Request("http://api.test:{{port}}/echo");
  for (const symbol of Object.getOwnPropertySymbols(request)) {
    const inner = request[symbol];
    if (inner === null || typeof inner !== "object") continue;
    for (const key of Reflect.ownKeys(inner)) {
      const value = inner[key];
      try {
        if (typeof value === "string" && value.startsWith("http")) inner[key] = target;
        if (Array.isArray(value)) value.forEach((one: unknown, at: number) => {
          if (typeof one === "string" && one.startsWith("http")) value[at] = target;
          if (typeof one === "function") value[at] = () => target;
        });
      } catch {
        continue;
      }
    }
    try {
      inner.currentUrl = () => target;
    } catch {
      continue;
    }
  }
  const ended: string[] = [];
  for (const asked of [request, new Request(target)]) {
    try {
      const answer = await fetch(asked);
      // A request whose inner state cannot be changed goes to its original host, which is as good
      // as a refusal.
      ended.push(new URL(answer.url).hostname === "api.test" ? "PermissionDenied" : `answered ${answer.url}`);
    } catch (error) {
      ended.push((error as Error).name);
    }
  }
  return [...new Set(ended)];
}
