/**
 * A regular expression with a hundred thousand nested groups, for the engine's compiler of
 * expressions.
 *
 * status: success
 * output: "no crash"
 */
export async function execute(): Promise<string> {
  for (const [open, close] of [["(?:", ")"], ["(", ")"], ["(?=", ")"], ["(?<=", ")"], ["(?:a|", ")*"]]) {
    try {
      new RegExp(open.repeat(100_000) + "a" + close.repeat(100_000)).test("a");
    } catch {
      continue;
    }
  }
  return "no crash";
}
