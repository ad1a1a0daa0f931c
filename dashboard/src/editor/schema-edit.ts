/** Changes of an object's JSON Schema that keep what they do not know. */
import { limitsOf } from "../forms/schema";
import { isObject } from "./definition";

export type Schema = Record<string, unknown>;

export interface Member {
  name: string;
  schema: Schema;
  required: boolean;
}

/** Whether the form can show the schema: an object with named fields, and no alternatives. */
export function isSimple(schema: Schema): boolean {
  const hasFields = schema["type"] === "object" || isObject(schema["properties"]);
  return hasFields && (schema["properties"] === undefined || isObject(schema["properties"])) && ["$ref", "oneOf", "anyOf", "allOf"].every((word) => schema[word] === undefined);
}

export function members(schema: Schema): Member[] {
  const needed = names(schema);
  return Object.entries(properties(schema)).map(([name, one]) => ({ name, schema: isObject(one) ? one : {}, required: needed.includes(name) }));
}

function properties(schema: Schema): Schema {
  return isObject(schema["properties"]) ? schema["properties"] : {};
}

function names(schema: Schema): string[] {
  return Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
}

function withNames(schema: Schema, needed: string[]): Schema {
  const { required: _, ...rest } = schema;
  return needed.length === 0 ? rest : { ...schema, required: needed };
}

export function added(schema: Schema, name: string): Schema {
  return withNames({ ...schema, properties: { ...properties(schema), [name]: { type: "string" } } }, [...names(schema), name]);
}

export function removed(schema: Schema, name: string): Schema {
  const { [name]: _, ...rest } = properties(schema);
  return withNames({ ...schema, properties: rest }, names(schema).filter((one) => one !== name));
}

export function renamed(schema: Schema, from: string, to: string): Schema {
  if (to === "" || to === from || properties(schema)[to] !== undefined) return schema;
  const entries = Object.entries(properties(schema)).map(([name, one]) => [name === from ? to : name, one]);
  return withNames({ ...schema, properties: Object.fromEntries(entries) }, names(schema).map((name) => (name === from ? to : name)));
}

export function required(schema: Schema, name: string, isRequired: boolean): Schema {
  const others = names(schema).filter((one) => one !== name);
  return withNames(schema, isRequired ? [...others, name] : others);
}

export function moved(schema: Schema, index: number, by: number): Schema {
  const entries = Object.entries(properties(schema));
  const [one] = entries.splice(index, 1);
  if (one !== undefined) entries.splice(index + by, 0, one);
  return { ...schema, properties: Object.fromEntries(entries) };
}

const named = (type: string) => (old: Schema): Schema => {
  const { items: _, properties: __, enum: ___, ...rest } = old;
  return { ...rest, type };
};
const listOf = (items: Schema) => (old: Schema): Schema => ({ ...named("array")(old), items });

/** The types that the form offers, and how a field becomes one. */
export const TYPES: Record<string, (old: Schema) => Schema> = {
  string: named("string"),
  integer: named("integer"),
  number: named("number"),
  boolean: named("boolean"),
  object: (old) => ({ ...named("object")(old), properties: {} }),
  "list of strings": listOf({ type: "string" }),
  "list of numbers": listOf({ type: "number" }),
  "list of objects": listOf({ type: "object", properties: {} }),
  anything: ({ type: _, items: __, properties: ___, ...rest }) => rest,
};

export function typed(schema: Schema): string {
  const type = schema["type"];
  if (type === undefined && schema["$ref"] === undefined && schema["oneOf"] === undefined && schema["anyOf"] === undefined && !isObject(schema["properties"])) return "anything";
  if (type === undefined && isObject(schema["properties"])) return "object";
  if (type !== "array") return typeof type === "string" ? type : "see the JSON";
  const items = isObject(schema["items"]) ? schema["items"]["type"] : undefined;
  return typeof items === "string" && TYPES[`list of ${items}s`] !== undefined ? `list of ${items}s` : "list, see the JSON";
}

/** The limits that a field of this type can have. */
export function WORDS(schema: Schema): [word: string, said: string][] {
  switch (schema["type"]) {
    case "string":
      return [["minLength", "At least (characters)"], ["maxLength", "At most (characters)"], ["pattern", "Pattern"], ["format", "Format"]];
    case "integer":
    case "number":
      return [["minimum", "At least"], ["maximum", "At most"], ["multipleOf", "A multiple of"]];
    case "array":
      return [["minItems", "At least (items)"], ["maxItems", "At most (items)"]];
    default:
      return [];
  }
}

export function words(schema: Schema): string {
  return limitsOf(schema).join("; ");
}
