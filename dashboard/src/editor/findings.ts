/** What is wrong with a tool: what the type checker and what the validators find, in one list. */
import { jsonLanguage } from "@codemirror/lang-json";
import type { SyntaxNode } from "@lezer/common";
import type { ToolFinding } from "@rcrt/client";
import type { Problem } from "./checker";
import type { Mark } from "./codemirror";

export interface Finding {
  severity: "error" | "warning";
  /** In which text it is. */
  where: "code" | "json";
  /** As a person reads it, such as `line 3` or `examples[0].input`. */
  place: string;
  message: string;
  /** Who found it. */
  source: string;
  fix?: string | undefined;
  from: number;
  to: number;
}

export function ofTypes(problems: Problem[], source: string): Finding[] {
  return problems.map(({ from, to, message, isError }) => ({
    severity: isError ? "error" : "warning",
    where: "code",
    place: `line ${lineAt(source, from)}`,
    message,
    source: "TypeScript",
    from,
    to,
  }));
}

export function ofValidator(findings: ToolFinding[], severity: Finding["severity"], source: string, json: string): Finding[] {
  return findings.map((finding): Finding => {
    const common = { severity, message: finding.message, source: finding.rule, fix: finding.fix };
    if (finding.field === "code.source" || (finding.field === "code" && finding.line !== undefined)) {
      const [from, to] = rangeAt(source, finding.line ?? 1, finding.column ?? 1);
      return { ...common, where: "code", place: `line ${finding.line ?? 1}`, from, to };
    }
    const [from, to] = locate(json, finding.field);
    return { ...common, where: "json", place: finding.field === "" ? "the definition" : finding.field, from, to };
  });
}

export function marks(findings: Finding[], where: Finding["where"]): Mark[] {
  const own = findings.filter((finding) => finding.where === where);
  return own.map(({ severity, message, source, fix, from, to }) => ({ severity, source, from, to, message: fix === undefined ? message : `${message}\n${fix}` }));
}

function lineAt(text: string, at: number): number {
  return text.slice(0, at).split("\n").length;
}

/** The word at a place. */
function rangeAt(text: string, line: number, column: number): [number, number] {
  const lines = text.split("\n");
  const start = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + column - 1;
  const word = /^[\w$]+/.exec(text.slice(start))?.[0] ?? text.slice(start, start + 1);
  return [Math.min(start, text.length), Math.min(start + word.length, text.length)];
}

/** Where the JSON text has a field such as `examples[0].input.a`, or what encloses it. */
export function locate(json: string, field: string): [number, number] {
  let node: SyntaxNode | null | undefined = jsonLanguage.parser.parse(json).topNode.firstChild;
  let range: [number, number] = [0, json.indexOf("{") + 1];
  let rest = field;
  while (node && rest !== "") {
    const step: Step | undefined = node.name === "Array" ? item(node, rest) : member(node, rest, json);
    if (step === undefined) break;
    ({ node, rest, range } = step);
  }
  return range;
}

interface Step {
  node: SyntaxNode | null;
  rest: string;
  range: [number, number];
}

function item(list: SyntaxNode, path: string): Step | undefined {
  const found = /^\[?(\d+)\]?\.?(.*)$/s.exec(path);
  if (found === null) return undefined;
  const values = list.getChildren("Object").concat(...["Array", "String", "Number", "True", "False", "Null"].map((name) => list.getChildren(name)));
  const node = values.sort((a, b) => a.from - b.from)[Number(found[1])];
  return node === undefined ? undefined : { node, rest: found[2] ?? "", range: [node.from, node.name === "Object" || node.name === "Array" ? node.from + 1 : node.to] };
}

/** A member's name can contain dots, so the longest one that fits is taken. */
function member(object: SyntaxNode, path: string, json: string): Step | undefined {
  let best: (Step & { length: number }) | undefined;
  for (const property of object.getChildren("Property")) {
    const name = property.getChild("PropertyName");
    if (name === null) continue;
    let text: string;
    try {
      text = JSON.parse(json.slice(name.from, name.to)) as string;
    } catch {
      continue;
    }
    if (!path.startsWith(text) || text.length <= (best?.length ?? -1)) continue;
    const rest = path.slice(text.length);
    if (rest === "" || rest.startsWith(".") || rest.startsWith("[")) {
      best = { node: property.lastChild, rest: rest.replace(/^\./, ""), range: [name.from, name.to], length: text.length };
    }
  }
  return best;
}
