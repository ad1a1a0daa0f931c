/**
 * Names that objects of the language have. They are names of tools like others.
 *
 * status: steps
 * steps: [
 *   {"create": {"name": "__proto__"}, "expect": {"status": "created", "name": "__proto__"}},
 *   {"create": {"name": "constructor"}, "expect": {"status": "created"}},
 *   {"call": "__proto__", "expect": {"output": 1}},
 *   {"call": "constructor", "expect": {"output": 1}},
 *   {"call": "hasOwnProperty", "expect": {"error_code": "ToolNotFound"}},
 *   {"call": "list_my_tools", "input": {}, "expect": {"output": {"tools": [{"name": "__proto__"}, {"name": "constructor"}]}}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
