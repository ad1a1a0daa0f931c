/**
 * The engine's own debugging functions, which some embedders leave enabled.
 *
 * status: refused
 * rule: syntax
 */
export async function execute(): Promise<unknown> {
  return %GetOptimizationStatus(execute);
}
