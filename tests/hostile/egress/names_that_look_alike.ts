/**
 * Names that contain, start with or end with a listed one, or are its parent. A comparison of text
 * suffixes would allow them.
 *
 * status: success
 * output: {"denied": 6}
 * permissions: {"net": ["*.good.example.com:{{port}}", "api.test:{{port}}"]}
 * never_asked: evilgood.example.com
 * never_asked: notapi.test
 */
export async function execute(): Promise<unknown> {
  let denied = 0;
  for (const host of ["evilgood.example.com", "good.example.com", "good.example.com.evil.inside.example.com", "notapi.test",
    "api.test.", "xapi.test"].map((name) => (name === "api.test." ? "sub.api.test" : name))) {
    await fetch(`http://${host}:{{port}}/${host}`).catch((error) => {
      if (error.name === "PermissionDenied") denied += 1;
    });
  }
  return { denied };
}
