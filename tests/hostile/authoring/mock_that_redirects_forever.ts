/**
 * A mock that redirects to itself. The tool follows it by hand, without end.
 *
 * status: steps
 * tools: 0
 * permissions: {"net": ["api.example.com"]}
 * limits: {"timeout_ms": 1000}
 * examples: [{"description": "Round and round", "input": {}, "http": [{"request": {"url": "https://api.example.com/loop"}, "response": {"status": 302, "headers": {"location": "https://api.example.com/loop"}}}]}]
 * steps: [
 *   {"create": {}, "expect": {"status": "rejected", "examples": [{"status": "failed"}]}}
 *   ]
 */
export async function execute(): Promise<void> {
  let url = "https://api.example.com/loop";
  for (;;) {
    const response = await fetch(url, { redirect: "manual" });
    url = response.headers.get("location") ?? url;
  }
}
