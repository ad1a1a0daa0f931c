/**
 * Examples nested so deeply that whoever walks them runs out of stack.
 *
 * status: steps
 * tools: 0
 * steps: [
 *   {"create": {"examples": [{"description": "Deep", "input": {"deep": {"@nest": 1000}}}]}, "refused": "nested deeper than 128 levels"},
 *   {"create": {"examples": [{"description": "Deep", "input": {}, "output": {"@nest": 1000}}]}, "refused": "nested deeper than 128 levels"}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
