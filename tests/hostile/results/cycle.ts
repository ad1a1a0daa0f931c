/**
 * A result that contains itself.
 *
 * status: error
 * error_code: InvalidOutput
 * details: {"path": "$.list[0]"}
 */
export async function execute(): Promise<unknown> {
  const round: { list: unknown[] } = { list: [] };
  round.list.push(round);
  return round;
}
