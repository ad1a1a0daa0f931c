/**
 * An example whose record has the id of another tenant's record. The example sees its own record,
 * and a call sees none.
 *
 * status: steps
 * tools: 1
 * never: foreign words
 * examples: [{"description": "Stated", "input": {}, "breadcrumbs": [{"id": "{{foreign}}", "title": "Mine", "context": {"words": "stated"}}], "output": "stated"}, {"description": "Not stated", "input": {}, "output": "NotFound"}]
 * steps: [
 *   {"create": {}, "expect": {"status": "created", "draft": false}},
 *   {"call": "{{tool}}", "expect": {"output": "NotFound"}}
 *   ]
 */
export async function execute(_input: unknown, context: any): Promise<string> {
  return await context.api.getBreadcrumb("{{foreign}}").then((found: any) => found.context.words, (error: Error) => error.name);
}
