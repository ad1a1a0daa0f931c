/** The difference of two texts by lines. */
export interface DiffLine {
  kind: "same" | "added" | "removed";
  text: string;
  /** The number of the line in the old and in the new text. */
  old?: number;
  new?: number;
}

/** More changed lines than this are shown as replaced: the comparison takes their square. */
const MOST = 1500;

export function diffLines(before: string, after: string): DiffLine[] {
  const a = before.split("\n");
  const b = after.split("\n");
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  let endA = a.length;
  let endB = b.length;
  while (endA > start && endB > start && a[endA - 1] === b[endB - 1]) {
    endA--;
    endB--;
  }
  const lines: DiffLine[] = [];
  const same = (i: number, j: number) => lines.push({ kind: "same", text: a[i] ?? "", old: i + 1, new: j + 1 });
  for (let i = 0; i < start; i++) same(i, i);
  for (const [kind, i, j] of middle(a.slice(start, endA), b.slice(start, endB))) {
    if (kind === "same") same(start + i, start + j);
    else if (kind === "removed") lines.push({ kind, text: a[start + i] ?? "", old: start + i + 1 });
    else lines.push({ kind, text: b[start + j] ?? "", new: start + j + 1 });
  }
  for (let i = endA, j = endB; i < a.length; i++, j++) same(i, j);
  return lines;
}

type Step = [kind: DiffLine["kind"], i: number, j: number];

/** By the longest common subsequence. */
function middle(a: string[], b: string[]): Step[] {
  if (a.length > MOST || b.length > MOST) {
    return [...a.map((_, i): Step => ["removed", i, 0]), ...b.map((_, j): Step => ["added", 0, j])];
  }
  const width = b.length + 1;
  const lengths = new Uint16Array((a.length + 1) * width);
  const at = (i: number, j: number) => lengths[i * width + j] ?? 0;
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      lengths[i * width + j] = a[i] === b[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1));
    }
  }
  const steps: Step[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    if (i < a.length && j < b.length && a[i] === b[j]) steps.push(["same", i++, j++]);
    else if (j >= b.length || (i < a.length && at(i + 1, j) >= at(i, j + 1))) steps.push(["removed", i++, j]);
    else steps.push(["added", i, j++]);
  }
  return steps;
}

/** Only the changes with some lines around them. `null` stands for what is left out. */
export function withContext(lines: DiffLine[], around = 3): (DiffLine | null)[] {
  const shown = new Set<number>();
  lines.forEach((line, index) => {
    if (line.kind === "same") return;
    for (let near = index - around; near <= index + around; near++) shown.add(near);
  });
  const result: (DiffLine | null)[] = [];
  lines.forEach((line, index) => {
    if (shown.has(index)) result.push(line);
    else if (result.at(-1) !== null) result.push(null);
  });
  return result;
}
