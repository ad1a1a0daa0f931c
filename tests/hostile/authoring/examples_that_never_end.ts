/**
 * Examples that never end. Each is stopped by the limit of its tool, and nothing is written.
 *
 * status: steps
 * tools: 0
 * limits: {"timeout_ms": 400}
 * examples: {"@list": [{"description": "Endless", "input": {}}, 3]}
 * steps: [
 *   {"create": {}, "expect": {"status": "rejected", "examples": [{"status": "failed"}]}, "says": ["Timeout"]}
 *   ]
 */
export async function execute(): Promise<void> {
  for (;;);
}
