/**
 * The engine is configured to record every frame of a stack, and the error comes from a depth of
 * thousands of frames.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: deep
 */
export async function execute(): Promise<void> {
  Error.stackTraceLimit = Infinity;
  const dive = (depth: number): number => {
    if (depth === 0) throw new Error("deep");
    return dive(depth - 1) + 1;
  };
  dive(5_000);
}
