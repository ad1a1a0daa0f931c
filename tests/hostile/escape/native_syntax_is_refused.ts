/**
 * The engine's own debugging words, which some embedders leave switched on.
 *
 * status: refused
 * rule: syntax
 */
export async function execute(): Promise<unknown> {
  return %GetOptimizationStatus(execute);
}
