/**
 * A regular expression that backtracks practically forever. The time is spent in the engine's
 * matcher, where no statement of the tool's code runs.
 *
 * status: error
 * error_code: Timeout
 * details: {"limit": "timeout_ms", "allowed": 400}
 * limits: {"timeout_ms": 400}
 */
export async function execute(): Promise<boolean> {
  return /^(a+)+$/.test("a".repeat(60) + "!");
}
