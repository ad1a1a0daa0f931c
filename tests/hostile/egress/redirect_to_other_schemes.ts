/**
 * Redirects to files, to data, to scripts and to URLs with a password.
 *
 * status: success
 * output: ["TypeError"]
 * permissions: {"net": ["api.test:{{port}}"]}
 * arrived: {"path": "/to/302/{{tool}}/0", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/1", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/2", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/3", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/4", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/5", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/6", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/7", "holds": ["GET "]}
 * arrived: {"path": "/to/302/{{tool}}/8", "holds": ["GET "]}
 * never_reached: /echo/{{tool}}
 */
export async function execute(): Promise<string[]> {
  const ends = new Set<string>();
  for (const [at, target] of ["file:///etc/passwd", "data:text/plain,inside", "javascript:1", "ftp://api.test/", "gopher://api.test:{{port}}/_x",
    "http://user:password@api.test:{{port}}/echo/{{tool}}", "http://[::1", "http:///", "ws://api.test:{{port}}/echo/{{tool}}"].entries()) {
    const url = `http://api.test:{{port}}/to/302/{{tool}}/${at}?url=${target}`;
    ends.add(await fetch(url).then((answer) => `answered ${answer.url}`, (error) => error.name));
  }
  return [...ends];
}
