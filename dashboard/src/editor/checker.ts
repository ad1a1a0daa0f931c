/** The type checker's side in the page. */
import type { CompletionContext, CompletionResult } from "@codemirror/autocomplete";
import type { EditorView, Tooltip } from "@codemirror/view";
import type { Assistance } from "./codemirror";

export interface Problem {
  from: number;
  to: number;
  message: string;
  isError: boolean;
}
export interface Completions {
  isMember: boolean;
  items: { label: string; kind: string; sort: string }[];
}
export interface About {
  code: string;
  text: string;
  from: number;
  to: number;
}
export type Question =
  | { kind: "types"; shared: string; own: string }
  | { kind: "source"; text: string; isTyped: boolean }
  | { kind: "problems" }
  | { kind: "completions"; at: number }
  | { kind: "detail"; at: number; name: string }
  | { kind: "about"; at: number };
export interface Answer {
  id: number;
  value: unknown;
  failed?: string;
}

export class Checker {
  #worker = new Worker(new URL("./checker.worker.ts", import.meta.url), { type: "module", name: "rcrt-types" });
  #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (why: Error) => void }>();
  #next = 1;
  #ended: Error | undefined;

  constructor() {
    this.#worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      const waiting = this.#waiting.get(data.id);
      this.#waiting.delete(data.id);
      if (data.failed === undefined) waiting?.resolve(data.value);
      else waiting?.reject(new Error(data.failed));
    };
    this.#worker.onerror = (event) => {
      event.preventDefault();
      this.#end(new Error(event.message || "The type checker could not be loaded."));
    };
  }

  types(shared: string, own: string): Promise<unknown> {
    return this.#ask({ kind: "types", shared, own });
  }

  source(text: string, isTyped: boolean): Promise<unknown> {
    return this.#ask({ kind: "source", text, isTyped });
  }

  async problems(): Promise<Problem[]> {
    return (await this.#ask({ kind: "problems" })) as Problem[];
  }

  close(): void {
    this.#worker.terminate();
    this.#end(new Error("The editor was closed."));
  }

  /** For the code editor. `isTyped` is false for JavaScript. */
  assistance(isTyped: () => boolean): Assistance {
    const current = (text: string) => this.source(text, isTyped());
    return {
      completions: async (context: CompletionContext): Promise<CompletionResult | null> => {
        const word = context.matchBefore(/[\w$]*/);
        const before = context.state.sliceDoc(Math.max(0, (word?.from ?? context.pos) - 1), word?.from ?? context.pos);
        if (!context.explicit && before !== "." && (word === null || word.from === word.to)) return null;
        await current(context.state.doc.toString());
        const found = (await this.#ask({ kind: "completions", at: context.pos })) as Completions | undefined;
        if (found === undefined || context.aborted) return null;
        const options = found.items.map(({ label, kind, sort }, index) => ({
          label,
          type: kind,
          boost: Math.max(-99, 50 - index / 4 - (sort > "12" ? 20 : 0)),
          info: async () => element((await this.#ask({ kind: "detail", at: context.pos, name: label })) as About | undefined),
        }));
        return { from: word?.from ?? context.pos, options, validFor: /^[\w$]*$/ };
      },
      hover: async (view: EditorView, at: number): Promise<Tooltip | null> => {
        await current(view.state.doc.toString());
        const found = (await this.#ask({ kind: "about", at })) as About | undefined;
        const dom = element(found);
        if (found === undefined || dom === null) return null;
        return { pos: found.from, end: found.to, above: true, create: () => ({ dom }) };
      },
    };
  }

  #ask(question: Question): Promise<unknown> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const id = this.#next++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, question });
    });
  }

  #end(why: Error): void {
    this.#ended = why;
    for (const waiting of this.#waiting.values()) waiting.reject(why);
    this.#waiting.clear();
  }
}

/** Only text: a description can be anything. */
function element(about: About | undefined): HTMLElement | null {
  if (about === undefined || about.code === "") return null;
  const dom = document.createElement("div");
  dom.className = "cm-about";
  const code = document.createElement("code");
  code.textContent = about.code;
  dom.append(code);
  if (about.text !== "") {
    const text = document.createElement("p");
    text.textContent = about.text;
    dom.append(text);
  }
  return dom;
}
