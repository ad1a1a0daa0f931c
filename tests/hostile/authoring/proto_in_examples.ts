/**
 * Keys that change prototypes, in inputs, outputs, records and schemas. They are plain data.
 *
 * status: steps
 * tools: 1
 * input_schema: {"type": "object", "properties": {"__proto__": {"type": "object"}, "constructor": {"type": "object"}}}
 * examples: [{"description": "Polluted", "input": {"__proto__": {"polluted": 1}, "constructor": {"prototype": {"polluted": 1}}}, "breadcrumbs": [{"title": "Note", "tags": ["proto"], "context": {"__proto__": {"polluted": 1}}}], "output": [["__proto__", "constructor"], ["__proto__"], "undefined", {"__proto__": 1}]}]
 * steps: [
 *   {"create": {}, "expect": {"status": "created", "draft": false}}
 *   ]
 */
export async function execute(input: object, context: any): Promise<unknown[]> {
  const [note] = await context.api.searchBreadcrumbs({ tag: "proto", include_context: true });
  const own = JSON.parse('{"__proto__": 1}');
  return [Object.keys(input), Object.keys(note.context), typeof ({} as any).polluted, own];
}
