/** A tool from a template's record, as `rcrt tool new` makes it. */
import { isObject, textOf, type ToolText } from "../definition";

export interface Placeholder {
  name: string;
  description: string;
  default?: string;
}

export interface Template {
  name: string;
  description: string;
  placeholders: Placeholder[];
  record: Record<string, unknown>;
  code: { language: string; source: string };
}

export function templateOf(context: Record<string, unknown>): Template | undefined {
  const { name, description, placeholders, record, code } = context;
  const isTemplate = typeof name === "string" && Array.isArray(placeholders) && isObject(record) && isObject(code) && typeof code["source"] === "string";
  return isTemplate ? ({ name, description: String(description ?? ""), placeholders, record, code } as unknown as Template) : undefined;
}

export function fromTemplate(template: Template, given: Record<string, string>): ToolText {
  const values = Object.fromEntries(template.placeholders.map((one) => [one.name, given[one.name] || (one.default ?? "")]));
  const context = filled(template.record["context"], values) as Record<string, unknown>;
  const { json } = textOf({ ...context, code: { language: template.code.language } });
  // In the source a placeholder is inside of a string or a line comment.
  return { json, source: fill(template.code.source, values, (text) => JSON.stringify(text).slice(1, -1)) };
}

function filled(value: unknown, values: Record<string, string>): unknown {
  if (typeof value === "string") return fill(value, values, (text) => text);
  if (Array.isArray(value)) return value.map((one) => filled(one, values));
  if (isObject(value)) return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, values)]));
  return value;
}

function fill(text: string, values: Record<string, string>, escaped: (value: string) => string): string {
  return text.replace(/\{\{(\w+)\}\}/g, (whole, name: string) => {
    const value = values[name];
    return value === undefined ? whole : escaped(value.replace(/[\n\r\u2028\u2029\0]+/g, " "));
  });
}
