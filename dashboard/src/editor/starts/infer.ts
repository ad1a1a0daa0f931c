/** The schema that an example value fits. */
import { isObject } from "../definition";

type Schema = Record<string, unknown>;

export function inferred(value: unknown): Schema {
  if (value === null) return { type: "null" };
  if (Array.isArray(value)) return { type: "array", items: value.length === 0 ? {} : value.map(inferred).reduce(both) };
  if (isObject(value)) {
    const properties = Object.fromEntries(Object.entries(value).map(([name, one]) => [name, inferred(one)]));
    const required = Object.keys(properties);
    return { type: "object", properties, ...(required.length === 0 ? {} : { required }) };
  }
  return { type: Number.isInteger(value) ? "integer" : typeof value };
}

/** A schema for values of both. */
function both(a: Schema, b: Schema): Schema {
  const types = [...new Set([a["type"], b["type"]].flat())];
  if (types.includes("number")) types.splice(0, types.length, ...types.filter((one) => one !== "integer"));
  if (a["type"] === "object" && b["type"] === "object") {
    const [left, right] = [a["properties"] as Record<string, Schema>, b["properties"] as Record<string, Schema>];
    const names = [...new Set([...Object.keys(left), ...Object.keys(right)])];
    const properties = Object.fromEntries(names.map((name) => [name, left[name] && right[name] ? both(left[name], right[name]) : (left[name] ?? right[name])]));
    const required = names.filter((name) => [a, b].every((one) => Array.isArray(one["required"]) && one["required"].includes(name)));
    return { type: "object", properties, ...(required.length === 0 ? {} : { required }) };
  }
  if (a["type"] === "array" && b["type"] === "array") return { type: "array", items: both(a["items"] as Schema, b["items"] as Schema) };
  if (types[0] === undefined) return a["type"] === undefined ? b : a;
  return { type: types.length === 1 ? types[0] : types };
}

/** Adds a description to each field without one: agents read them. */
export function described(schema: Schema, name = ""): Schema {
  const own: Schema = { ...schema };
  if (name !== "" && own["description"] === undefined) own["description"] = `The ${name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replaceAll(/[_-]+/g, " ").toLowerCase()}.`;
  if (isObject(own["properties"])) own["properties"] = Object.fromEntries(Object.entries(own["properties"]).map(([member, one]) => [member, isObject(one) ? described(one, member) : one]));
  if (isObject(own["items"])) own["items"] = described(own["items"]);
  return own;
}
