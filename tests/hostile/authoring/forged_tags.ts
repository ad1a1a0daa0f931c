/**
 * Tags that only the store sets, on a record that an author writes itself and on a request.
 *
 * status: steps
 * tools: 2
 * steps: [
 *   {"write": {}, "tags": ["author:curator"], "expect": {"version": 1}, "lacks": ["author:curator"]},
 *   {"by": "rival", "write": {}, "tags": ["tool:draft", "author:curator", "made-by:{{author}}"], "expect": {"version": 1}, "lacks": ["author:curator"]},
 *   {"create": {"name": "{{tool}}-asked"}, "tags": ["author:curator"], "expect": {"status": "created", "draft": false}},
 *   {"by": "rival", "call": "list_my_tools", "input": {}, "expect": {"status": "success"}, "lacks": ["{{tool}}"]},
 *   {"call": "list_my_tools", "input": {}, "expect": {"output": {"tools": [{"name": "{{tool}}-asked"}]}}, "lacks": ["\"{{tool}}\""]}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
