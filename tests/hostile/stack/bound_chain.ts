/**
 * A function is bound a million times, and then called.
 *
 * status: success
 * output: "no crash"
 */
export async function execute(): Promise<string> {
  let chain: any = () => 1;
  for (let i = 0; i < 1_000_000; i++) chain = chain.bind(null);
  try {
    chain();
    String(chain);
  } catch {
    return "no crash";
  }
  return "no crash";
}
