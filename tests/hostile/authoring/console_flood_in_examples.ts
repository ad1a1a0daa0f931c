/**
 * Examples that print without end. The response has the first lines of all together.
 *
 * status: steps
 * tools: 1
 * examples: {"@list": [{"description": "Loud", "input": {}, "output": 1}, 3]}
 * steps: [
 *   {"create": {}, "expect": {"status": "created"}, "says": ["line 1"], "lacks": ["line 19999", "zzzzzz"]}
 *   ]
 */
export async function execute(): Promise<number> {
  for (let i = 1; i < 20_000; i++) console.log(`line ${i}`);
  console.log("z".repeat(3_000_000));
  return 1;
}
