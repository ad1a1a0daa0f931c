/**
 * A revoked proxy is thrown: even the check whether it is an array throws, and so does reading its
 * prototype.
 *
 * status: error
 * error_code: ExecutionFailed
 * details: {}
 */
export async function execute(): Promise<void> {
  const { proxy, revoke } = Proxy.revocable([], {});
  revoke();
  throw proxy;
}
