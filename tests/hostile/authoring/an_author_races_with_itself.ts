/**
 * An author creates two different tools of one name at the same moment.
 *
 * status: steps
 * tools: 1
 * outcomes: {"created": 1, "rejected": 1, "success": 1}
 * steps: [
 *   {"create": {"description": "The first."}, "with_next": true},
 *   {"create": {"description": "The second."}},
 *   {"call": "{{tool}}", "expect": {"output": 1}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
