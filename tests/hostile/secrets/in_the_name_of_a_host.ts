/**
 * The handle as a part of the host's name, with a permission for every host and a secret bound to
 * all names there. DNS servers would see the value.
 *
 * status: success
 * output: ["PermissionDenied, HOSTNAME_KEY"]
 * secrets: [{"name": "HOSTNAME_KEY", "value": "sk-live-hostname-0987654321", "hosts": ["*.example.com"]}]
 * permissions: {"net": true}
 * never_asked: placed.inside.example.com
 */
export async function execute(_input: unknown, context: any): Promise<string[]> {
  const key: string = context.secrets.HOSTNAME_KEY;
  const ends = new Set<string>();
  const told = (error: Error) => error.name + (/"HOSTNAME_KEY".* in the host/.test(error.message) ? ", HOSTNAME_KEY" : `: ${error.message}`);
  for (const scheme of ["http", "https"]) {
    for (const name of [key, key.toUpperCase(), `a.${key}`]) {
      ends.add(await fetch(`${scheme}://${name}.placed.inside.example.com/`).then((answer) => `answered ${answer.status}`, told));
    }
  }
  return [...ends];
}
