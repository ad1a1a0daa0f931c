/** The parts of JSON Schema that tables and forms understand. Everything else is edited as JSON. */
export type Schema = Record<string, unknown>;

export interface Field {
  name: string;
  schema: Schema;
  required: boolean;
}

export interface TableRow {
  /** Such as `filters[].op`. */
  path: string;
  depth: number;
  type: string;
  required: boolean;
  limits: string[];
  description: string;
}

const isObject = (value: unknown): value is Schema => typeof value === "object" && value !== null && !Array.isArray(value);
const MOST_DEPTH = 6;

/** What a `$ref` inside of the same schema means, with the words beside it. */
function resolved(schema: unknown, root: unknown): Schema {
  if (!isObject(schema)) return {};
  const ref = schema["$ref"];
  if (typeof ref !== "string" || !ref.startsWith("#/")) return schema;
  const steps = ref.slice(2).split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
  const target = steps.reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), root);
  return isObject(target) ? { ...target, ...schema } : schema;
}

export function fieldsOf(schema: unknown, root: unknown = schema): Field[] {
  if (!isObject(schema) || !isObject(schema["properties"])) return [];
  const required = Array.isArray(schema["required"]) ? schema["required"] : [];
  return Object.entries(schema["properties"]).map(([name, property]) => {
    const own = resolved(property, root);
    const items = isObject(own["items"]) ? { items: resolved(own["items"], root) } : {};
    return { name, schema: { ...own, ...items }, required: required.includes(name) };
  });
}

/** What a value can be, in words. */
export function typeOf(schema: Schema): string {
  if (Array.isArray(schema["enum"])) return "one of";
  if ("const" in schema) return "always";
  const type = schema["type"];
  const list = (Array.isArray(type) ? type : [type]).filter((one): one is string => typeof one === "string");
  const items = isObject(schema["items"]) ? schema["items"] : undefined;
  const names = list.map((one) => (one === "array" && items !== undefined ? `list of ${typeOf(items)}` : one === "array" ? "list" : one));
  if (names.length > 0) return names.join(" or ");
  for (const word of ["oneOf", "anyOf"]) {
    const choices = schema[word];
    if (Array.isArray(choices)) return [...new Set(choices.filter(isObject).map(typeOf))].join(" or ");
  }
  return typeof schema["$ref"] === "string" ? "see the schema" : "anything";
}

const LIMITS: [string, (value: unknown) => string][] = [
  ["enum", (value) => (value as unknown[]).map((one) => JSON.stringify(one)).join(", ")],
  ["const", (value) => JSON.stringify(value)],
  ["default", (value) => `default ${JSON.stringify(value)}`],
  ["format", String],
  ["minimum", (value) => `at least ${value}`],
  ["exclusiveMinimum", (value) => `more than ${value}`],
  ["maximum", (value) => `at most ${value}`],
  ["exclusiveMaximum", (value) => `less than ${value}`],
  ["multipleOf", (value) => `a multiple of ${value}`],
  ["minLength", (value) => (value === 1 ? "not empty" : `at least ${value} characters`)],
  ["maxLength", (value) => `at most ${Number(value).toLocaleString("en")} characters`],
  ["pattern", (value) => `pattern ${value}`],
  ["minItems", (value) => `at least ${value} ${value === 1 ? "item" : "items"}`],
  ["maxItems", (value) => `at most ${Number(value).toLocaleString("en")} items`],
  ["uniqueItems", (value) => (value === true ? "no item twice" : "")],
];

export function limitsOf(schema: Schema): string[] {
  return LIMITS.filter(([word]) => schema[word] !== undefined).map(([word, say]) => say(schema[word])).filter((text) => text !== "");
}

export function tableOf(schema: unknown, root: unknown = schema, prefix = "", depth = 0): TableRow[] {
  if (depth > MOST_DEPTH) return [];
  return fieldsOf(schema, root).flatMap((field) => {
    const path = `${prefix}${field.name}`;
    const items = isObject(field.schema["items"]) ? field.schema["items"] : undefined;
    const row: TableRow = {
      path,
      depth,
      type: typeOf(field.schema),
      required: field.required,
      limits: limitsOf(field.schema),
      description: typeof field.schema["description"] === "string" ? field.schema["description"] : "",
    };
    const inside = items === undefined ? tableOf(field.schema, root, `${path}.`, depth + 1) : tableOf(items, root, `${path}[].`, depth + 1);
    return [row, ...inside];
  });
}

export type Control = "text" | "long" | "number" | "integer" | "boolean" | "choice" | "texts" | "json";

/** How a field is edited. */
export function controlOf(schema: Schema): Control {
  if (Array.isArray(schema["enum"])) return "choice";
  const type = Array.isArray(schema["type"]) ? schema["type"].filter((one) => one !== "null") : [schema["type"]];
  if (type.length !== 1) return "json";
  switch (type[0]) {
    case "string":
      return Number(schema["maxLength"] ?? 0) > 400 || (schema["maxLength"] === undefined && schema["format"] === undefined) ? "long" : "text";
    case "number":
      return "number";
    case "integer":
      return "integer";
    case "boolean":
      return "boolean";
    case "array":
      return isObject(schema["items"]) && schema["items"]["type"] === "string" && !Array.isArray(schema["items"]["enum"]) ? "texts" : "json";
    default:
      return "json";
  }
}

/** An input to begin with: the required fields, and defaults. */
export function startOf(schema: unknown): Record<string, unknown> {
  const start: Record<string, unknown> = {};
  for (const { name, schema: field, required } of fieldsOf(schema)) {
    if ("default" in field) {
      if (required) start[name] = field["default"];
    } else if (required) {
      const choices = Array.isArray(field["enum"]) ? field["enum"] : undefined;
      const empty: Record<Control, unknown> = { text: "", long: "", number: 0, integer: 0, boolean: false, choice: choices?.[0], texts: [], json: fieldsOf(field).length > 0 ? startOf(field) : field["type"] === "array" ? [] : field["type"] === "object" ? {} : null };
      start[name] = empty[controlOf(field)];
    }
  }
  return start;
}
