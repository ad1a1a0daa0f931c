/**
 * An error with the name of a refusal of the runtime, thrown by the tool itself: callers act on the code, so it must not be
 * the tool's to choose.
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
