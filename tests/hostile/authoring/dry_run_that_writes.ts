/**
 * A dry run, and a rejected creation, of a tool that writes records in its examples. None of it is
 * stored.
 *
 * status: steps
 * tools: 0
 * records: 0
 * steps: [
 *   {"create": {}, "request": {"mode": "dry_run"}, "expect": {"status": "dry_run", "examples": [{"status": "passed", "writes": [{"create": {"title": "Written"}}]}]}},
 *   {"create": {"examples": [{"description": "Wrong", "input": {}, "output": 2}]}, "expect": {"status": "rejected"}},
 *   {"call": "test_tool", "input": {"tool_spec": {"name": "{{tool}}", "description": "Writes.", "code": {"language": "javascript", "source": "export async function execute(input, context) { await context.api.createBreadcrumb({ title: 'Written', tags: ['{{tool}}'], context: {} }); return 1; }"}, "input_schema": {"type": "object"}, "output_schema": {}, "examples": [{"description": "One", "input": {}, "output": 1}]}}, "expect": {"output": {"passed": true}}}
 *   ]
 */
export async function execute(_input: unknown, context: any): Promise<number> {
  await context.api.createBreadcrumb({ title: "Written", tags: ["{{tool}}"], context: {} });
  return 1;
}
