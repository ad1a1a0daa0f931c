/**
 * A plain eval in the source, which must not even reach a worker.
 *
 * status: refused
 * rule: no-eval
 */
export async function execute(): Promise<number> {
  return eval("1 + 1");
}
