/**
 * Examples that reach for this machine, with and without stated requests. No example has a real
 * network.
 *
 * status: steps
 * permissions: {"net": true}
 * never_reached: /echo/{{tool}}
 * steps: [
 *   {"create": {"examples": [{"description": "Nothing stated", "input": {}}]}, "expect": {"status": "created", "draft": true, "examples": [{"status": "not_run"}]}},
 *   {"create": {"examples": [{"description": "No request", "input": {}, "http": [], "output": ["PermissionDenied", "TypeError"]}], "version": "1.1.0"}, "request": {"mode": "update"}, "expect": {"status": "updated", "draft": false}},
 *   {"create": {"examples": [{"description": "Another request", "input": {}, "http": [{"request": {"url": "https://api.example.com/"}}]}]}, "request": {"mode": "update"}, "expect": {"status": "rejected"}}
 *   ]
 */
export async function execute(): Promise<string[]> {
  const answers: string[] = [];
  for (const port of [":{{port}}", ""]) {
    const answer = fetch(`http://127.0.0.1${port}/echo/{{tool}}`).then((response) => response.text());
    answers.push(await answer.catch((error: Error) => error.name));
  }
  return answers;
}
