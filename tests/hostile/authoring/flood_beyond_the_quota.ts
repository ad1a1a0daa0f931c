/**
 * An agent creates more tools at once than it can create in an hour, and then one more.
 *
 * status: steps
 * outcomes: {"created": 3, "rejected": 4, "success": 1}
 * steps: [
 *   {"by": "bounded", "create": {"name": "{{tool}}-1"}, "with_next": true},
 *   {"by": "bounded", "create": {"name": "{{tool}}-2"}, "with_next": true},
 *   {"by": "bounded", "create": {"name": "{{tool}}-3"}, "with_next": true},
 *   {"by": "bounded", "create": {"name": "{{tool}}-4"}, "with_next": true},
 *   {"by": "bounded", "create": {"name": "{{tool}}-5"}, "with_next": true},
 *   {"by": "bounded", "create": {"name": "{{tool}}-6"}},
 *   {"by": "bounded", "call": "list_my_tools", "input": {}, "expect": {"status": "success"}},
 *   {"by": "bounded", "create": {"name": "{{tool}}-7"}, "expect": {"status": "rejected", "error_code": "ResourceExhausted"}, "says": ["4 tools within an hour"]}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
