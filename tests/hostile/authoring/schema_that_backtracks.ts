/**
 * A pattern in a schema that needs exponential time for the input of an example.
 *
 * status: steps
 * tools: 0
 * steps: [
 *   {"create": {"input_schema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}, "examples": [{"description": "Slow", "input": {"a": {"@repeat": ["a", 50000]}}}, {"description": "Slow", "input": {"a": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}}]},
 *   "expect": {"status": "rejected"}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
