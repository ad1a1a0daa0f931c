/**
 * A name that is public in the first lookup and this machine in the second. A check of another
 * address than the one that is connected to would allow it.
 *
 * status: success
 * output: ["TypeError", "PermissionDenied", "PermissionDenied"]
 * permissions: {"net": ["{{tool}}.rebind.example.com:{{port}}"]}
 * limits: {"timeout_ms": 600000}
 * never_reached: /echo/{{tool}}
 */
export async function execute(): Promise<string[]> {
  const ends: string[] = [];
  for (let i = 0; i < 3; i++) {
    const url = "http://{{tool}}.rebind.example.com:{{port}}/echo/{{tool}}";
    ends.push(await fetch(url).then((answer) => `answered ${answer.status}`, (error) => error.name));
  }
  return ends;
}
