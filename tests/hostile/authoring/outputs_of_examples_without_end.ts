/**
 * Fifty examples with outputs and writes that together do not fit into a response. The tool is
 * written, so the response must say so.
 *
 * status: steps
 * tools: 1
 * examples: {"@list": [{"description": "Large", "input": {}}, 50]}
 * steps: [
 *   {"create": {}, "expect": {"status": "created", "draft": false}, "says": ["bytes of JSON"]},
 *   {"call": "test_tool", "input": {"name": "{{tool}}"}, "expect": {"status": "success"}}
 *   ]
 */
export async function execute(_input: unknown, context: any): Promise<string> {
  const text = "x".repeat(100_000);
  await context.api.createBreadcrumb({ title: "Large", context: { text } });
  return text;
}
