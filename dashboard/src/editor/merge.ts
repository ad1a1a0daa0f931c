/** Three versions of a text by lines: what both sides kept, what one changed, what both changed. */
import { diffLines } from "../lib/diff";

export type Side = "mine" | "theirs" | "both";

export interface Part {
  kind: "same" | "changed" | "conflict";
  /** For a part that is not a conflict, the lines of the result. */
  lines: string[];
  mine: string[];
  theirs: string[];
}

interface Hunk {
  /** The lines of the base that are replaced: from `start`, up to but without `end`. */
  start: number;
  end: number;
  lines: string[];
}

/** What changed from the base, as replaced ranges of its lines. */
function hunks(base: string, text: string): Hunk[] {
  const found: Hunk[] = [];
  let open: Hunk | undefined;
  let at = 0;
  for (const line of diffLines(base, text)) {
    if (line.kind === "same") {
      open = undefined;
      at++;
      continue;
    }
    if (open === undefined) found.push((open = { start: at, end: at, lines: [] }));
    if (line.kind === "removed") open.end = ++at;
    else open.lines.push(line.text);
  }
  return found;
}

export function merge(base: string, mine: string, theirs: string): Part[] {
  const lines = base.split("\n");
  const [own, other] = [hunks(base, mine), hunks(base, theirs)];
  const parts: Part[] = [];
  let at = 0;
  const same = (to: number) => {
    if (to > at) parts.push({ kind: "same", lines: lines.slice(at, to), mine: [], theirs: [] });
    at = Math.max(at, to);
  };
  while (own.length > 0 || other.length > 0) {
    const start = Math.min(own[0]?.start ?? Infinity, other[0]?.start ?? Infinity);
    same(start);
    // Changes that touch each other are one part.
    let end = start;
    const [a, b]: [Hunk[], Hunk[]] = [[], []];
    const touches = (hunk: Hunk | undefined): hunk is Hunk => hunk !== undefined && hunk.start <= end;
    for (;;) {
      const [next, list] = touches(own[0]) ? [own.shift(), a] : touches(other[0]) ? [other.shift(), b] : [undefined, a];
      if (next === undefined) break;
      list.push(next);
      end = Math.max(end, next.end);
    }
    const [left, right] = [applied(lines, start, end, a), applied(lines, start, end, b)];
    at = end;
    if (b.length === 0) parts.push({ kind: "changed", lines: left, mine: left, theirs: right });
    else if (a.length === 0 || left.join("\n") === right.join("\n")) parts.push({ kind: "changed", lines: right, mine: left, theirs: right });
    else parts.push({ kind: "conflict", lines: [], mine: left, theirs: right });
  }
  same(lines.length);
  return parts;
}

/** The lines of the base from `start` to `end`, with these changes. */
function applied(lines: string[], start: number, end: number, changes: Hunk[]): string[] {
  const result: string[] = [];
  let at = start;
  for (const change of changes) {
    result.push(...lines.slice(at, change.start), ...change.lines);
    at = change.end;
  }
  return [...result, ...lines.slice(at, end)];
}

/** The merged text. `chosen` has the side of each conflict, in order. */
export function merged(parts: Part[], chosen: Side[]): string {
  let conflict = 0;
  const lines = parts.flatMap((part) => {
    if (part.kind !== "conflict") return part.lines;
    const side = chosen[conflict++] ?? "mine";
    return side === "mine" ? part.mine : side === "theirs" ? part.theirs : [...part.mine, ...part.theirs];
  });
  return lines.join("\n");
}
