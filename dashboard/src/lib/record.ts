/** The fields of a record that a person edits. */
import type { Breadcrumb } from "@rcrt/client";
import { pretty } from "./format";

export interface Draft {
  title: string;
  description: string;
  schemaName: string;
  tags: string;
  context: string;
}

export function draftOf(record: Breadcrumb): Draft {
  return {
    title: record.title,
    description: record.description ?? "",
    schemaName: record.schema_name ?? "",
    tags: record.tags.join(" "),
    context: pretty(record.context),
  };
}

/** Throws an error that says what is wrong. */
export function readDraft(draft: Draft) {
  let context: unknown;
  try {
    context = JSON.parse(draft.context);
  } catch (error) {
    throw new Error(`The context is not JSON: ${(error as Error).message}`);
  }
  if (typeof context !== "object" || context === null || Array.isArray(context)) throw new Error("The context must be a JSON object, such as {}.");
  return {
    title: draft.title,
    description: draft.description.trim() === "" ? null : draft.description,
    schema_name: draft.schemaName.trim() === "" ? null : draft.schemaName.trim(),
    tags: draft.tags.split(/\s+/).filter((tag) => tag !== ""),
    context: context as Record<string, unknown>,
  };
}
