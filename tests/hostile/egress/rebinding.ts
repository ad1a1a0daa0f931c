/**
 * A name that is public when it is looked up first and this machine when it is looked up again: a check that is not made on
 * the very address that is dialled lets it in.
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
