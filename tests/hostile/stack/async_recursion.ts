/**
 * An async function that calls itself before it first waits. The overflow becomes a rejection deep
 * in the engine.
 *
 * status: error
 * error_code: ExecutionFailed
 * message: RangeError
 */
export async function execute(): Promise<number> {
  const dive = async (): Promise<number> => 1 + (await dive());
  return await dive();
}
