/**
 * The code editor. It is in a shadow root, where its styles are constructed style sheets: the
 * Content-Security-Policy refuses style elements. Its theme uses the colours of the page.
 */
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap, type CompletionSource } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { javascript } from "@codemirror/lang-javascript";
import { json } from "@codemirror/lang-json";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { EditorState, type Extension } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, highlightActiveLineGutter, hoverTooltip, keymap, lineNumbers, tooltips, type HoverTooltipSource } from "@codemirror/view";
import { tags } from "@lezer/highlight";

export type Language = "typescript" | "javascript" | "json";

export interface Assistance {
  completions: CompletionSource;
  hover: HoverTooltipSource;
}

export interface Setup {
  host: HTMLElement;
  text: string;
  language: Language;
  /** The name for screen readers. */
  label: string;
  readOnly: boolean;
  changed: (text: string) => void;
  assistance?: Assistance | undefined;
}

/** From 0, as the editor counts. */
export interface Mark extends Pick<Diagnostic, "from" | "to" | "severity" | "message" | "source"> {}

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.modifier, tags.operatorKeyword, tags.controlKeyword], color: "var(--accent)" },
  { tag: [tags.string, tags.special(tags.string), tags.regexp], color: "var(--ok)" },
  { tag: [tags.number, tags.bool, tags.null, tags.escape], color: "var(--warn)" },
  { tag: [tags.typeName, tags.className, tags.namespace], color: "var(--busy)" },
  { tag: [tags.comment, tags.lineComment, tags.blockComment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.propertyName], color: "var(--text)" },
  { tag: [tags.definition(tags.variableName), tags.function(tags.variableName)], color: "var(--text)", fontWeight: "600" },
  { tag: tags.invalid, color: "var(--bad)" },
]);
const jsonColours = HighlightStyle.define([{ tag: tags.propertyName, color: "var(--accent)" }]);

/** The usual marks are images in data: URLs, which the Content-Security-Policy refuses. */
const dot = (colour: string, shape: object) => ({ content: "normal", width: "9px", height: "9px", margin: "5px 2px 0", backgroundColor: colour, ...shape });
const line = (colour: string) => ({ backgroundImage: "none", textDecoration: `underline wavy ${colour}`, textDecorationSkipInk: "none", textUnderlineOffset: "3px" });
const round = { borderRadius: "50%" };
const triangle = { clipPath: "polygon(50% 0, 100% 100%, 0 100%)" };

const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--panel)", fontSize: "13px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--selected)" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  ".cm-gutters": { backgroundColor: "var(--panel)", color: "var(--muted)", border: "0", borderRight: "1px solid var(--line)" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text)" },
  ".cm-gutter-lint": { width: "15px" },
  ".cm-selectionMatch": { backgroundColor: "var(--accent-bg)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--accent-bg)", outline: "1px solid var(--accent)" },
  "&.cm-focused .cm-nonmatchingBracket": { backgroundColor: "var(--bad-bg)" },
  ".cm-lintRange-error": line("var(--bad)"),
  ".cm-lintRange-warning": line("var(--warn)"),
  ".cm-lintRange-info": line("var(--busy)"),
  ".cm-lint-marker-error": dot("var(--bad)", round),
  ".cm-lint-marker-warning": dot("var(--warn)", triangle),
  ".cm-lint-marker-info": dot("var(--busy)", round),
  ".cm-tooltip": { border: "1px solid var(--strong-line)", borderRadius: "8px", backgroundColor: "var(--panel)", color: "var(--text)", boxShadow: "var(--shadow)", overflow: "hidden" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "12.5px", maxHeight: "240px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "2px 10px 2px 4px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent-bg)", color: "var(--text)" },
  ".cm-completionMatchedText": { textDecoration: "none", color: "var(--accent)", fontWeight: "600" },
  ".cm-completionDetail, .cm-completionIcon": { color: "var(--muted)", opacity: "1" },
  ".cm-tooltip.cm-completionInfo": { padding: "8px 10px", maxWidth: "420px" },
  ".cm-about": { padding: "8px 10px", maxWidth: "520px", maxHeight: "260px", overflow: "auto", whiteSpace: "pre-wrap", overflowWrap: "anywhere" },
  ".cm-about code": { display: "block", fontFamily: "var(--mono)", fontSize: "12.5px" },
  ".cm-about p": { margin: "6px 0 0", fontFamily: "var(--font)", color: "var(--muted)" },
  ".cm-tooltip-lint": { maxWidth: "560px" },
  ".cm-diagnostic": { padding: "6px 10px", fontFamily: "var(--font)", whiteSpace: "pre-wrap", overflowWrap: "anywhere" },
  ".cm-diagnosticSource": { color: "var(--muted)", opacity: "1", fontSize: "12px" },
  ".cm-diagnostic-error": { borderLeft: "3px solid var(--bad)" },
  ".cm-diagnostic-warning": { borderLeft: "3px solid var(--warn)" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)" },
  ".cm-panels-top": { borderBottom: "1px solid var(--line)" },
  ".cm-panels-bottom": { borderTop: "1px solid var(--line)" },
  ".cm-panel.cm-search": { fontFamily: "var(--font)", padding: "6px 10px" },
  ".cm-textfield": { backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--strong-line)", borderRadius: "5px", fontSize: "13px" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--panel)", color: "var(--text)", border: "1px solid var(--strong-line)", borderRadius: "5px" },
  ".cm-searchMatch": { backgroundColor: "var(--warn-bg)", outline: "1px solid var(--warn)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--accent-bg)", outline: "1px solid var(--accent)" },
});

/**
 * A browser that replaces a selection keeps its style in an inline style, which the
 * Content-Security-Policy refuses. So the selection is replaced here.
 */
const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    const { state } = view;
    const text = event.data;
    const { from, to, empty } = state.selection.main;
    if (event.inputType !== "insertText" || text === null || empty || view.composing || state.readOnly) return false;
    const usual = () => state.update(state.replaceSelection(text), { userEvent: "input.type", scrollIntoView: true });
    if (!state.facet(EditorView.inputHandler).some((handle) => handle(view, from, to, text, usual))) view.dispatch(usual());
    return true;
  },
});

function extensions(setup: Setup): Extension[] {
  const isJson = setup.language === "json";
  const assistance = setup.assistance;
  return [
    lintGutter(),
    lineNumbers(),
    highlightActiveLineGutter(),
    highlightActiveLine(),
    history(),
    drawSelection(),
    indentOnInput(),
    indentUnit.of("  "),
    EditorState.tabSize.of(2),
    EditorState.readOnly.of(setup.readOnly),
    bracketMatching(),
    closeBrackets(),
    highlightSelectionMatches(),
    search({ top: true }),
    // In the shadow root, where the styles are.
    tooltips({ position: "fixed", parent: setup.host.shadowRoot?.querySelector<HTMLElement>("div") ?? setup.host }),
    isJson ? json() : javascript({ typescript: setup.language === "typescript" }),
    ...(isJson ? [syntaxHighlighting(jsonColours)] : []),
    syntaxHighlighting(colours),
    ...(assistance === undefined ? [] : [autocompletion({ override: [assistance.completions] }), hoverTooltip(assistance.hover, { hoverTime: 400 })]),
    // Ctrl-Enter is the screen's own key.
    keymap.of([...closeBracketsKeymap, ...defaultKeymap.filter((one) => one.key !== "Mod-Enter"), ...searchKeymap, ...historyKeymap, ...completionKeymap, ...lintKeymap, indentWithTab]),
    EditorView.contentAttributes.of({ "aria-label": setup.label, tabindex: "0", "aria-readonly": String(setup.readOnly) }),
    EditorView.updateListener.of((update) => update.docChanged && setup.changed(update.state.doc.toString())),
    ...(isJson ? [EditorView.lineWrapping] : []),
    replacing,
    theme,
  ];
}

export class CodeView {
  #view: EditorView;

  constructor(setup: Setup) {
    const root = setup.host.shadowRoot ?? setup.host.attachShadow({ mode: "open" });
    const frame = document.createElement("div");
    frame.style.height = "100%";
    root.replaceChildren(frame);
    this.#view = new EditorView({ parent: frame, root, state: EditorState.create({ doc: setup.text, extensions: extensions(setup) }) });
  }

  /** A text that did not come from this editor. */
  set text(text: string) {
    const doc = this.#view.state.doc;
    const old = doc.toString();
    if (old === text) return;
    // Only what differs, so that the cursor and what is on the screen stay.
    let from = 0;
    const most = Math.min(old.length, text.length);
    while (from < most && old[from] === text[from]) from++;
    let cut = 0;
    while (cut < most - from && old[old.length - 1 - cut] === text[text.length - 1 - cut]) cut++;
    this.#view.dispatch({ changes: { from, to: old.length - cut, insert: text.slice(from, text.length - cut) } });
  }

  set marks(marks: Mark[]) {
    const length = this.#view.state.doc.length;
    const inside = marks.map((mark) => ({ ...mark, from: Math.min(mark.from, length), to: Math.min(Math.max(mark.from, mark.to), length) }));
    this.#view.dispatch(setDiagnostics(this.#view.state, inside));
  }

  /** Shows a place, and puts the cursor there. */
  go(from: number, to = from): void {
    const length = this.#view.state.doc.length;
    const [anchor, head] = [Math.min(from, length), Math.min(to, length)];
    this.#view.dispatch({ selection: { anchor, head }, effects: EditorView.scrollIntoView(anchor, { y: "center" }) });
    this.#view.focus();
  }

  /** Scrolls the text to a place, and not the page. */
  show(at: number): void {
    const view = this.#view;
    view.requestMeasure({
      read: () => view.lineBlockAt(Math.min(at, view.state.doc.length)).top,
      write: (top) => view.scrollDOM.scrollTo(0, top),
    });
  }

  destroy(): void {
    this.#view.destroy();
  }
}
