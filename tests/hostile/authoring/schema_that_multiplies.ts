/**
 * Schemas whose references multiply at each level, so that one check would take a hundred million
 * steps.
 *
 * status: steps
 * tools: 0
 * steps: [
 *   {"create": {"input_schema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"allOf": {"@list": [{"$ref": "#/$defs/b"}, 10]}}, "b": {"allOf": {"@list": [{"$ref": "#/$defs/c"}, 10]}}, "c": {"allOf": {"@list": [{"$ref": "#/$defs/d"}, 10]}}, "d": {"allOf": {"@list": [{"$ref": "#/$defs/e"}, 10]}}, "e": {"allOf": {"@list": [{"$ref": "#/$defs/f"}, 10]}}, "f": {"allOf": {"@list": [{"$ref": "#/$defs/g"}, 10]}}, "g": {"allOf": {"@list": [{"$ref": "#/$defs/h"}, 10]}}, "h": {"allOf": {"@list": [{"$ref": "#/$defs/i"}, 10]}}, "i": {"type": "integer"}}}, "examples": [{"description": "One", "input": {"a": 1}}]},
 *   "expect": {"status": "rejected", "validation": {"errors": [{"rule": "schema-invalid"}]}}},
 *   {"create": {"output_schema": {"$ref": "https://api.test:{{port}}/schema.json"}}, "expect": {"status": "rejected"}},
 *   {"create": {"input_schema": {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}}, "examples": [{"description": "One", "input": {"a": 1}}]}, "expect": {"status": "rejected"}}
 *   ]
 */
export async function execute(): Promise<number> {
  return 1;
}
