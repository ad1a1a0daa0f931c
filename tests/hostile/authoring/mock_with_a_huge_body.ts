/**
 * A mock whose response is larger than an example can be, and a tool that sends more than is
 * compared.
 *
 * status: steps
 * tools: 0
 * permissions: {"net": ["api.example.com"]}
 * steps: [
 *   {"create": {"examples": [{"description": "Huge", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}, "response": {"body": {"@repeat": ["x", 300000]}}}]}]},
 *   "expect": {"status": "rejected", "validation": {"errors": [{"rule": "example-form"}]}}},
 *   {"create": {"examples": [{"description": "Huge", "input": {}, "http": [{"request": {"method": "POST", "url": "https://api.example.com/"}}]}]},
 *   "expect": {"status": "rejected", "examples": [{"status": "failed"}]}, "says": ["at most 1048576 bytes"]}
 *   ]
 */
export async function execute(): Promise<void> {
  await fetch("https://api.example.com/", { method: "POST", body: "x".repeat(1_500_000) });
}
