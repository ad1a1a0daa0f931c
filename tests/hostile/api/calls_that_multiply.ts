/**
 * Each call calls its own tool twice and waits for both, so that the number of calls doubles with
 * each step, and all slots of the runner are wanted by calls that wait. The depth of calls is
 * bounded, and a call that could only wait in vain is refused.
 *
 * status: success
 * permissions: {"tools": ["{{tool}}"]}
 * limits: {"timeout_ms": 600000}
 * output: "ended"
 */
export async function execute(_input: unknown, context: any): Promise<string> {
  const calls = [1, 2].map((n) => context.api.callTool("{{tool}}", { n }));
  for (const call of await Promise.allSettled(calls)) {
    const error = (call as PromiseRejectedResult).reason;
    if (call.status === "fulfilled" ? call.value !== "ended" : !["PermissionDenied", "ResourceExhausted"].includes(error.name)) {
      throw error ?? new Error("another output");
    }
  }
  return "ended";
}
