/**
 * A list with a length of 2^53 and an element at every index, as a proxy can pretend.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: Invalid string length
 * limits: {"timeout_ms": 600000}
 */
export async function execute(): Promise<unknown> {
  return new Proxy([], {
    get(target, key, receiver) {
      if (key === "length") return Number.MAX_SAFE_INTEGER;
      return key === "toJSON" ? undefined : 1;
    },
  });
}
