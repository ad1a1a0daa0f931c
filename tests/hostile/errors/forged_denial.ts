/**
 * The tool itself throws an error with the name of a refusal of the runtime. Callers act on the
 * code, so the tool must not be able to choose it.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: PermissionDenied: give me more
 */
export async function execute(): Promise<void> {
  const error = new Error("give me more");
  error.name = "PermissionDenied";
  throw Object.assign(error, { code: "PermissionDenied", op: "PermissionDenied", error_code: "Cancelled" });
}
