/**
 * A toJSON that returns a new object with a toJSON, deeper and deeper, so that the writer of the
 * result recurses.
 *
 * status: error
 * error_code: InvalidOutput
 * message: nested too deeply
 */
export async function execute(): Promise<unknown> {
  const deeper = (): unknown => ({ toJSON: () => ({ next: deeper() }) });
  return deeper();
}
