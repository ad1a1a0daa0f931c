/** A tool as the editor holds it: its definition as JSON text, and its source beside it. */
import { pretty } from "../lib/format";

export interface ToolText {
  /** The record's context without `code.source`, as a person writes it. */
  json: string;
  source: string;
}

export type Definition = Record<string, unknown>;

export const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

export function textOf(context: Definition): ToolText {
  const code = isObject(context["code"]) ? context["code"] : {};
  const { source, ...rest } = code;
  return { json: pretty({ ...context, code: rest }), source: typeof source === "string" ? source : "" };
}

export interface Parsed {
  value?: Definition;
  /** Why the text is not a definition. */
  wrong: string;
}

export function parse(json: string): Parsed {
  try {
    const value: unknown = JSON.parse(json);
    return isObject(value) ? { value, wrong: "" } : { wrong: "The definition must be a JSON object." };
  } catch (error) {
    return { wrong: (error as Error).message };
  }
}

/** The context of the tool's record. */
export function contextOf(definition: Definition, source: string): Definition {
  const code = isObject(definition["code"]) ? definition["code"] : {};
  return { ...definition, code: { language: "typescript", ...code, source } };
}

/** Whether both are the same tool, however their JSON is written. */
export function isSame(a: ToolText, b: ToolText): boolean {
  if (a.source !== b.source) return false;
  if (a.json === b.json) return true;
  const [left, right] = [parse(a.json).value, parse(b.json).value];
  return left !== undefined && right !== undefined && canonical(left) === canonical(right);
}

/** The same text for the same value, whatever the order of its members. */
export function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_, one: unknown) =>
      isObject(one) ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1))) : one,
    ) ?? "undefined"
  );
}

/** A copy in which the member at `path` has this value; `undefined` removes it. */
export function changed(definition: Definition, path: string[], value: unknown): Definition {
  const [name, ...rest] = path;
  if (name === undefined) return definition;
  const inner = rest.length === 0 ? value : changed(isObject(definition[name]) ? definition[name] : {}, rest, value);
  const copy = { ...definition };
  if (inner === undefined || (rest.length > 0 && isObject(inner) && Object.keys(inner).length === 0)) delete copy[name];
  else copy[name] = inner;
  return copy;
}

export const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,99}$/;
