/**
 * A URL that is different each time it is read: one for the check, the other for the request.
 *
 * status: success
 * output: ["PermissionDenied", "PermissionDenied"]
 * permissions: {"net": ["api.test:{{port}}"]}
 * never_asked: faced.inside.example.com
 */
export async function execute(): Promise<string[]> {
  const evil = "http://faced.inside.example.com:{{port}}/";
  const good = "http://api.test:{{port}}/echo/{{tool}}";
  const ends: string[] = [];
  for (const order of [[evil, good], [good, evil]]) {
    let reads = 0;
    const face = { toString: () => order[Math.min(reads++, 1)] };
    // Read once, it is one of the two: the bad one is denied, the good one gets a response.
    const end = await fetch(face as any).then((answer) => answer.url, (error) => error.name);
    ends.push(end === good ? "PermissionDenied" : end);
  }
  return ends;
}
