/**
 * A draft with a subscription and a bootstrap. Neither runs it: it would act in a tenant that has
 * not accepted it.
 *
 * status: steps
 * records: 0
 * permissions: {"net": ["api.example.com"]}
 * steps: [
 *   {"create": {"subscriptions": [{"all_tags": ["{{tool}}-bait"]}], "bootstrap": {"enabled": true, "mode": "once", "input": {"real": true}}}, "expect": {"status": "created", "draft": true}},
 *   {"write": {"name": "{{tool}}-bait"}, "tags": ["{{tool}}-bait"], "expect": {"version": 1}},
 *   {"call": "describe_tool", "input": {"name": "{{tool}}"}, "expect": {"output": {"draft": true}}}
 *   ]
 */
export async function execute(_input: unknown, context: any): Promise<string> {
  await context.api.createBreadcrumb({ title: "I ran", tags: ["{{tool}}"], context: {} });
  await fetch("https://api.example.com/");
  return "ran";
}
