/**
 * An example of a tool with a granted secret prints what it gets. Also after the grant that is not
 * the value.
 *
 * status: steps
 * tools: 1
 * secrets: [{"name": "EXAMPLE_KEY", "value": "sk-live-example-112233", "hosts": ["api.test:{{port}}"], "granted": false}]
 * steps: [
 *   {"create": {}, "expect": {"status": "created"}},
 *   {"granted": true, "call": "test_tool", "input": {"name": "{{tool}}"}, "expect": {"output": {"passed": true, "examples": [{"actual": ["example-EXAMPLE_KEY", "example-EXAMPLE_KEY"]}]}}}
 *   ]
 */
export async function execute(_input: unknown, context: any): Promise<string[]> {
  console.log(context.secrets.EXAMPLE_KEY);
  return [`${context.secrets.EXAMPLE_KEY}`, `${await context.api.getSecret("EXAMPLE_KEY", "to print it")}`];
}
