/**
 * Two agents choose the same request id, and one of them names the other as its agent. Each gets
 * its own response.
 *
 * status: steps
 * tools: 1
 * outcomes: {"created": 2, "success": 2}
 * steps: [
 *   {"create": {}, "request": {"request_id": "{{tool}}-shared"}, "with_next": true, "expect": {"name": "{{tool}}"}},
 *   {"by": "rival", "create": {"name": "{{tool}}-other"}, "request": {"request_id": "{{tool}}-shared", "agent_id": "{{author}}"}, "expect": {"name": "{{tool}}-other"}},
 *   {"by": "rival", "call": "describe_tool", "input": {"name": "{{tool}}-other"}, "expect": {"output": {"is_yours": true}}},
 *   {"call": "describe_tool", "input": {"name": "{{tool}}-other"}, "expect": {"output": {"is_yours": false}}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
