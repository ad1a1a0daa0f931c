/**
 * A thousand examples, each of which would take its time in the sandbox.
 *
 * status: steps
 * tools: 0
 * examples: {"@list": [{"description": "One of many", "input": {}}, 1000]}
 * steps: [
 *   {"create": {}, "expect": {"status": "rejected", "examples": []}, "says": ["has 1000 examples"]}
 *   ]
 */
export async function execute(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 5_000));
}
