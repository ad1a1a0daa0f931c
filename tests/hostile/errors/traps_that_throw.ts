/**
 * A proxy all of whose traps throw, including the one for its prototype: everything that can be
 * read from the thrown value fails.
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
