/**
 * A name that another author has, that a native tool has, and updates of tools that are not one's
 * own.
 *
 * status: steps
 * tools: 1
 * steps: [
 *   {"create": {}, "expect": {"status": "created"}},
 *   {"by": "rival", "create": {}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "name-taken"}]}}},
 *   {"by": "rival", "create": {}, "request": {"mode": "update"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "not-found"}]}}},
 *   {"by": "rival", "create": {"name": "create_tool"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "name-taken"}]}}},
 *   {"by": "rival", "create": {"name": "good"}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "name-taken"}]}}},
 *   {"by": "foreigner", "create": {"description": "Of another tenant."}, "expect": {"status": "created"}},
 *   {"call": "describe_tool", "input": {"name": "{{tool}}"}, "expect": {"output": {"is_yours": true, "definition": {"description": "A tool of the tests."}}}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
