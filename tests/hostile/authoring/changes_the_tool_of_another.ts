/**
 * Another author, of the same and of another tenant, updates, tests and retires a tool.
 *
 * status: steps
 * tools: 1
 * steps: [
 *   {"create": {}, "expect": {"status": "created"}},
 *   {"by": "rival", "call": "update_tool", "input": {"name": "{{tool}}", "changes": {"description": "Mine."}}, "expect": {"status": "error", "error_code": "PermissionDenied"}},
 *   {"by": "rival", "call": "retire_tool", "input": {"name": "{{tool}}"}, "expect": {"status": "error", "error_code": "PermissionDenied"}},
 *   {"by": "rival", "call": "test_tool", "input": {"name": "{{tool}}"}, "expect": {"status": "error", "error_code": "PermissionDenied"}},
 *   {"by": "foreigner", "call": "update_tool", "input": {"name": "{{tool}}", "changes": {"description": "Mine."}}, "expect": {"status": "error", "error_code": "InvalidArguments"}},
 *   {"by": "foreigner", "call": "retire_tool", "input": {"name": "{{tool}}"}, "expect": {"status": "error", "error_code": "InvalidArguments"}},
 *   {"by": "foreigner", "call": "test_tool", "input": {"name": "{{tool}}"}, "expect": {"status": "error", "error_code": "InvalidArguments"}},
 *   {"by": "foreigner", "call": "describe_tool", "input": {"name": "{{tool}}"}, "expect": {"status": "error", "error_code": "InvalidArguments"}},
 *   {"call": "update_tool", "input": {"name": "{{tool}}", "changes": {"name": "good"}}, "expect": {"status": "error", "error_code": "InvalidArguments"}},
 *   {"call": "{{tool}}", "expect": {"output": 1, "metadata": {"tool_version": 1}}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
