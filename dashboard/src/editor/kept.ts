/** Unsaved changes, which this tab keeps over a reload. Only for the agent that made them. */
import { session } from "../lib/session.svelte";
import type { ToolText } from "./definition";

export interface Kept extends ToolText {
  /** The version of the record that was changed; 0 for a tool that is not written yet. */
  version: number;
  /** When they were kept, in milliseconds since 1970. */
  at: number;
}

const key = (name: string) => `rcrt.editor.${session.identity?.agentId ?? ""}.${name}`;

/** False if this browser has no more room. */
export function keep(name: string, text: ToolText, version: number): boolean {
  try {
    const kept: Kept = { json: text.json, source: text.source, version, at: Date.now() };
    sessionStorage.setItem(key(name), JSON.stringify(kept));
    return true;
  } catch {
    return false;
  }
}

export function kept(name: string): Kept | undefined {
  try {
    const found = JSON.parse(sessionStorage.getItem(key(name)) ?? "null") as Kept | null;
    return typeof found?.json === "string" && typeof found.source === "string" ? found : undefined;
  } catch {
    return undefined;
  }
}

/** The tools with unsaved changes. */
export function keptNames(): string[] {
  const prefix = key("");
  return Object.keys(sessionStorage).filter((one) => one.startsWith(prefix)).map((one) => one.slice(prefix.length)).sort();
}

export function forget(name: string): void {
  sessionStorage.removeItem(key(name));
}
