/**
 * A toJSON that gives a new object with a toJSON, deeper and deeper: the writer of the result is made to recurse.
 *
 * status: error
 * error_code: InvalidOutput
 * message: nested too deeply
 */
export async function execute(): Promise<unknown> {
  const deeper = (): unknown => ({ toJSON: () => ({ next: deeper() }) });
  return deeper();
}
