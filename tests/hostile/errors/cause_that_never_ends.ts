/**
 * An endless chain of causes, each created when it is read.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: at the top
 * limits: {"timeout_ms": 20000}
 */
export async function execute(): Promise<void> {
  const deeper = (n: number): object => ({
    message: `cause ${n} ${"y".repeat(1_000_000)}`,
    get cause() {
      return deeper(n + 1);
    },
  });
  throw Object.defineProperty(new Error("at the top"), "cause", { get: () => deeper(1) });
}
