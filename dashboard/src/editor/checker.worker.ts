/** TypeScript in a worker, because checking takes about a second. */
import ts from "typescript";
import type { About, Answer, Completions, Problem, Question } from "./checker";

const LIBRARY = import.meta.glob<string>(["../../node_modules/typescript/lib/lib.{es,decorators}*.d.ts", "!**/*.full.d.ts"], { query: "?raw", import: "default", eager: true });
const library = new Map(Object.entries(LIBRARY).map(([path, text]) => [`/lib/${path.split("/").at(-1)}`, text]));

/** What the source exports must fit the schemas: the types here are those of own.d.ts. */
const FITS = `import { execute } from "./tool";\nconst fits: (input: Input, context: Context) => Output | Promise<Output> = execute;\n`;
const files = new Map<string, { text: string; version: number }>([["/fits.ts", { text: FITS, version: 1 }]]);

function write(name: string, text: string): void {
  const old = files.get(name);
  if (old?.text !== text) files.set(name, { text, version: (old?.version ?? 0) + 1 });
}
const read = (name: string) => files.get(name)?.text ?? library.get(name);

// The settings that `rcrt tool new` writes, and JavaScript.
const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ESNext,
  lib: ["lib.esnext.d.ts"],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  moduleDetection: ts.ModuleDetectionKind.Force,
  types: [],
  strict: true,
  noEmit: true,
  allowJs: true,
  skipLibCheck: true,
};
const registry = ts.createDocumentRegistry();
const service = ts.createLanguageService(
  {
    getCompilationSettings: () => OPTIONS,
    getScriptFileNames: () => [...files.keys()],
    getScriptVersion: (name) => String(files.get(name)?.version ?? 1),
    getScriptSnapshot: (name) => {
      const text = read(name);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => "/",
    getDefaultLibFileName: () => "/lib/lib.esnext.d.ts",
    fileExists: (name) => read(name) !== undefined,
    readFile: read,
    directoryExists: (name) => name === "/" || name === "/lib",
    getDirectories: () => [],
  },
  registry,
);

let source = "/tool.ts";

function problems(): Problem[] {
  const found = [...service.getSyntacticDiagnostics(source), ...service.getSemanticDiagnostics(source)];
  const own = found.map((one): Problem => {
    const from = one.start ?? 0;
    return { from, to: from + (one.length ?? 0), message: ts.flattenDiagnosticMessageText(one.messageText, "\n"), isError: one.category === ts.DiagnosticCategory.Error };
  });
  return source === "/tool.ts" ? [...own, ...misfits()] : own;
}

/** Where `execute` does not take or return what the schemas say. */
function misfits(): Problem[] {
  const UNASSIGNABLE = 2322;
  const misfit = service.getSemanticDiagnostics("/fits.ts").find((one) => one.code === UNASSIGNABLE);
  if (misfit === undefined) return [];
  const text = read(source) ?? "";
  const at = /\bexecute\b/.exec(text)?.index ?? 0;
  const lines = ts.flattenDiagnosticMessageText(misfit.messageText, "\n").split("\n");
  // The first line compares two whole functions; the last one names the member.
  const why = lines.slice(1).slice(-2).map((line) => line.trim()).join(" ");
  return [{ from: at, to: at + "execute".length, message: `execute does not fit the schemas. ${why}`, isError: false }];
}

const KINDS: Record<string, string | undefined> = {
  [ts.ScriptElementKind.functionElement]: "function",
  [ts.ScriptElementKind.memberFunctionElement]: "method",
  [ts.ScriptElementKind.memberVariableElement]: "property",
  [ts.ScriptElementKind.memberGetAccessorElement]: "property",
  [ts.ScriptElementKind.classElement]: "class",
  [ts.ScriptElementKind.interfaceElement]: "interface",
  [ts.ScriptElementKind.typeElement]: "type",
  [ts.ScriptElementKind.moduleElement]: "namespace",
  [ts.ScriptElementKind.enumElement]: "enum",
  [ts.ScriptElementKind.keyword]: "keyword",
  [ts.ScriptElementKind.constElement]: "constant",
};
const MOST = 400;

function completions(at: number): Completions | undefined {
  const found = service.getCompletionsAtPosition(source, at, { includeCompletionsForModuleExports: false, includeCompletionsWithInsertText: false });
  if (found === undefined) return undefined;
  const sorted = found.entries.toSorted((a, b) => (a.sortText === b.sortText ? 0 : a.sortText < b.sortText ? -1 : 1));
  return { isMember: found.isMemberCompletion, items: sorted.slice(0, MOST).map((one) => ({ label: one.name, kind: KINDS[one.kind] ?? "variable", sort: one.sortText })) };
}

function detail(at: number, name: string): About | undefined {
  const found = service.getCompletionEntryDetails(source, at, name, undefined, undefined, undefined, undefined);
  return found === undefined ? undefined : { code: ts.displayPartsToString(found.displayParts), text: ts.displayPartsToString(found.documentation), from: at, to: at };
}

function about(at: number): About | undefined {
  const found = service.getQuickInfoAtPosition(source, at);
  if (found === undefined) return undefined;
  const { start, length } = found.textSpan;
  return { code: ts.displayPartsToString(found.displayParts), text: ts.displayPartsToString(found.documentation), from: start, to: start + length };
}

function answer(question: Question): unknown {
  switch (question.kind) {
    case "types":
      write("/shared.d.ts", question.shared);
      write("/own.d.ts", question.own);
      return undefined;
    case "source":
      source = question.isTyped ? "/tool.ts" : "/tool.js";
      files.delete(question.isTyped ? "/tool.js" : "/tool.ts");
      write(source, question.text);
      return undefined;
    case "problems":
      return problems();
    case "completions":
      return completions(question.at);
    case "detail":
      return detail(question.at, question.name);
    case "about":
      return about(question.at);
  }
}

self.onmessage = ({ data }: MessageEvent<{ id: number; question: Question }>) => {
  let reply: Answer;
  try {
    reply = { id: data.id, value: answer(data.question) };
  } catch (error) {
    reply = { id: data.id, value: undefined, failed: String(error) };
  }
  self.postMessage(reply);
};
