/**
 * An update of a version that has been replaced, of one that never was, and of none.
 *
 * status: steps
 * tools: 1
 * steps: [
 *   {"create": {}, "expect": {"status": "created", "record_version": 1}},
 *   {"create": {"version": "1.1.0"}, "request": {"mode": "update", "if_version": 1}, "expect": {"status": "updated", "record_version": 2}},
 *   {"create": {"version": "1.2.0"}, "request": {"mode": "update", "if_version": 1}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "version-conflict"}]}}},
 *   {"create": {"version": "1.2.0"}, "request": {"mode": "update", "if_version": 99}, "expect": {"status": "rejected", "validation": {"errors": [{"rule": "version-conflict"}]}}},
 *   {"create": {"version": "1.2.0"}, "request": {"mode": "update", "if_version": 0}, "refused": "if_version"},
 *   {"call": "describe_tool", "input": {"name": "{{tool}}"}, "expect": {"output": {"record_version": 2}}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
