/**
 * Files and other local resources by URL, as fetch of some runtimes reads them.
 *
 * status: success
 * output: ["TypeError", "TypeError", "TypeError", "TypeError", "TypeError", "TypeError"]
 * permissions: {"net": true}
 */
export async function execute(): Promise<string[]> {
  const names: string[] = [];
  for (const url of ["file:///etc/passwd", "file://localhost/proc/self/environ", "ftp://example.com/", "unix:/run/x.sock",
    "ext:core/ops", "chrome://version/"]) {
    names.push(await fetch(url).then((answer) => `answered ${answer.status}`, (error) => error.name));
  }
  return names;
}
