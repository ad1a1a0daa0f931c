/**
 * Two authors create a tool of the same name at the same moment. Both find the name free, and only
 * one can have it.
 *
 * status: steps
 * tools: 1
 * outcomes: {"created": 1, "rejected": 1, "success": 1}
 * steps: [
 *   {"create": {"description": "Of the author."}, "with_next": true},
 *   {"by": "rival", "create": {"description": "Of the rival."}},
 *   {"call": "{{tool}}", "expect": {"output": 1}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
