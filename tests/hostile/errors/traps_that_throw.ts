/**
 * A proxy whose every trap throws, the trap for its prototype too: all that can be asked of what was thrown fails.
 *
 * status: error
 * error_code: ExecutionFailed
 * details: {}
 */
export async function execute(): Promise<void> {
  const angry: any = new Proxy({}, {
    get() {
      return () => {
        throw angry;
      };
    },
  });
  throw new Proxy(function () {}, angry);
}
