/** One tool in the editor: its text, the version that it comes from, and how it is written. */
import { largeResult, ProblemError, type Breadcrumb, type ToolTest } from "@rcrt/client";
import { inputOf, responseOf } from "../lib/call";
import { plural } from "../lib/format";
import { session } from "../lib/session.svelte";
import { readTool } from "../lib/tools";
import { Checks } from "./checks.svelte";
import { changed, contextOf, isSame, parse, textOf, type Definition, type ToolText } from "./definition";
import { forget, keep, kept } from "./kept";

export const DRAFT = "tool:draft";
/** After the last key. */
const KEEP_MS = 300;

export class ToolEditor {
  readonly checks = new Checks();
  text = $state.raw<ToolText>({ json: "{}", source: "" });
  /** The version of the record that is edited. Without one the tool is not written yet. */
  base = $state.raw<Breadcrumb | undefined>(undefined);
  /** The version that others call, if there is one. */
  published = $state<number>();
  /** A version that somebody else wrote since `base`. */
  other = $state.raw<Breadcrumb | undefined>(undefined);
  loading = $state(true);
  /** Why the tool cannot be edited. */
  failed = $state.raw<Error | undefined>(undefined);
  /** When the changes were made that this tab kept, if it did. */
  restored = $state<number>();
  isKept = $state(true);
  busy = $state("");
  /** Why the last action failed, and what the last one did. */
  error = $state.raw<Error | undefined>(undefined);
  done = $state("");
  tested = $state.raw<{ result: ToolTest; text: ToolText } | undefined>(undefined);
  #testing: AbortController | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly name: string) {}

  definition = $derived(parse(this.text.json));
  #saved = $derived(this.base === undefined ? undefined : textOf(this.base.context));
  isChanged = $derived(this.#saved === undefined || !isSame(this.#saved, this.text));
  isDraft = $derived(this.base?.tags.includes(DRAFT) ?? false);
  /** Whether the examples ran with exactly this text. */
  isTested = $derived(this.tested !== undefined && isSame(this.tested.text, this.text));

  async open(): Promise<void> {
    const mine = kept(this.name);
    try {
      const { entry, record } = await readTool(this.name);
      if (record === undefined) throw new Error("This tool's record cannot be read with your token.");
      if (record.schema_name !== "tool.code.v1") throw new Error(`${this.name} has no code: its record is a ${record.schema_name ?? "record without a schema name"}.`);
      const isAllowed = session.can.curate || record.created_by === session.identity?.agentId;
      if (!isAllowed) throw new Error(`Only its author and curators can change ${this.name}.`);
      this.base = record;
      this.published = entry !== undefined && "tool_version" in entry ? entry.tool_version : undefined;
      this.text = textOf(record.context);
      if (mine !== undefined && mine.version !== 0 && !isSame(mine, this.text)) await this.#restore(mine, record);
    } catch (error) {
      const isNew = error instanceof ProblemError && error.status === 404 && mine !== undefined;
      if (isNew) this.#take(mine);
      else this.failed = error as Error;
      session.check(error);
    } finally {
      this.loading = false;
    }
    if (this.failed === undefined) this.checks.check(this.text);
  }

  /** What this tab kept, on the version that it comes from. */
  async #restore(mine: ToolText & { version: number; at: number }, record: Breadcrumb): Promise<void> {
    if (mine.version !== record.version) {
      const versions = await session.client.getHistory(record.id);
      const before = versions.find((one) => one.version === mine.version);
      // Without the old version, both texts are compared as a whole.
      this.base = { ...record, version: mine.version, context: before?.context ?? {}, tags: before?.tags ?? record.tags };
      this.other = record;
    }
    this.#take(mine);
  }

  #take(mine: ToolText & { at: number }): void {
    this.text = { json: mine.json, source: mine.source };
    this.restored = mine.at;
  }

  close(): void {
    this.checks.close();
    this.#testing?.abort();
    clearTimeout(this.#timer);
    if (!this.loading && this.failed === undefined) this.keepNow();
  }

  /** A change by the person. */
  edit(text: ToolText): void {
    this.text = text;
    this.done = "";
    this.checks.check(text);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.keepNow(), KEEP_MS);
  }

  /** A change of one member of the definition by a form. */
  set(path: string[], value: unknown): void {
    const { value: definition } = this.definition;
    if (definition !== undefined) this.edit({ ...this.text, json: JSON.stringify(changed(definition, path, value), null, 2) });
  }

  /** Adds a call to the examples, with its output or its failure. */
  async addCall(id: string): Promise<void> {
    await this.#act("Reading the call…", async () => {
      const call = await session.client.getCall(id);
      const response = responseOf(call);
      const isWhole = response?.status === "success" && !largeResult(response);
      const failure = response?.status === "error" ? { error: { code: response.error_code, message: response.error } } : {};
      const examples = this.#parsed()["examples"];
      const example = { description: "From a call", input: inputOf(call), ...(isWhole ? { output: response.output } : failure) };
      this.set(["examples"], [...(Array.isArray(examples) ? examples : []), example]);
    });
  }

  keepNow(): void {
    if (this.isChanged) this.isKept = keep(this.name, this.text, this.base?.version ?? 0);
    else forget(this.name);
  }

  discard(): void {
    forget(this.name);
    this.restored = undefined;
    if (this.other !== undefined) this.base = this.other;
    this.other = undefined;
    if (this.base === undefined) return;
    this.edit(textOf(this.base.context));
  }

  /** Something wrote the record. */
  async changedMeanwhile(version: number): Promise<void> {
    if (this.base === undefined || this.busy !== "" || version <= this.base.version) return;
    const record = await session.client.getFullBreadcrumb(this.base.id).catch(() => undefined);
    if (record === undefined || record.version <= (this.base?.version ?? 0)) return;
    if (this.isChanged) this.other = record;
    else this.#wrote(record, `Version ${record.version} was written meanwhile, and is shown now.`);
  }

  /** The person decided what remains of both. */
  mergedWith(record: Breadcrumb, text: ToolText): void {
    this.#based(record);
    this.error = undefined;
    this.edit(text);
    this.done = `Your changes are now based on version ${record.version}. Save them.`;
  }

  /** Writes a draft: only its author can call it. True if it was written. */
  async save(): Promise<boolean> {
    return await this.#act("Saving…", async () => {
      const sent = this.text;
      const context = await this.#valid();
      const tags = this.base?.tags ?? ["tool", `tool:${this.name}`, "workspace:tools"];
      const changes = { context, tags: [...tags.filter((tag) => tag !== DRAFT), DRAFT] };
      const record = await this.#write(changes);
      const what = record.tags.includes(DRAFT) ? "a draft: only you can call it" : "published";
      this.#wrote(record, `Version ${record.version} is saved, ${what}.`, sent);
    });
  }

  /** Offers the draft to everybody, after it was saved. */
  async publish(): Promise<boolean> {
    if ((this.isChanged || this.base === undefined) && !(await this.save())) return false;
    return await this.#act("Publishing…", async () => {
      const base = this.base;
      if (base === undefined) return;
      if (!this.isDraft) {
        // The tenant has no drafts, so the save published it.
        this.done = `Version ${base.version} is published: everybody can call it.`;
        return;
      }
      if (session.can.curate) {
        await session.client.publishTool(this.name, { tool_id: base.id, version: base.version });
      } else {
        await session.client.updateBreadcrumb(base.id, base.version, { tags: base.tags.filter((tag) => tag !== DRAFT) });
      }
      const record = await session.client.getFullBreadcrumb(base.id);
      if (record.tags.includes(DRAFT)) throw new Error("It is still a draft: this tenant lets only curators publish tools. Ask one to publish it.");
      this.#wrote(record, `Version ${record.version} is published: everybody can call it.`);
    });
  }

  /** Writes an older version as the newest one. */
  async rollBack(version: { version: number; title: string; tags: string[]; context: Definition; schema_name?: string | null }): Promise<boolean> {
    return await this.#act("Rolling back…", async () => {
      const { valid, validation } = await session.client.validateTool(version.context);
      if (!valid) throw new Error(`Version ${version.version} is no longer valid: ${validation.errors[0]?.message ?? ""}`);
      const { title, tags, context, schema_name } = version;
      const record = await this.#write({ title, tags, context, schema_name: schema_name ?? "tool.code.v1" });
      const isDraft = record.tags.includes(DRAFT);
      this.#wrote(record, `Version ${version.version} is now version ${record.version}${isDraft ? ", a draft" : ""}.`);
    });
  }

  /** Runs the examples of the text as it is here. */
  async test(): Promise<boolean> {
    const text = this.text;
    const controller = new AbortController();
    this.#testing = controller;
    return await this.#act("Running the examples…", async () => {
      const definition = this.#parsed();
      try {
        const result = await session.client.testTool(contextOf(definition, text.source), { signal: controller.signal });
        this.tested = { result, text };
      } catch (error) {
        throw controller.signal.aborted ? new Error("You cancelled the run of the examples.") : error;
      }
    });
  }

  get isTesting(): boolean {
    return this.busy === "Running the examples…";
  }

  cancelTest(): void {
    this.#testing?.abort();
  }

  #parsed(): Definition {
    const { value, wrong } = this.definition;
    if (value === undefined) throw new Error(`The definition is not JSON yet: ${wrong}`);
    if (value["name"] !== this.name) throw new Error(`The field name must stay "${this.name}": callers use it. Make a new tool for another name.`);
    return value;
  }

  /** The context to be written, which the validators accept. */
  async #valid(): Promise<Definition> {
    const context = contextOf(this.#parsed(), this.text.source);
    const { valid, validation } = await session.client.validateTool(context);
    const [first] = validation.errors;
    if (!valid) throw new Error(`Nothing was written, because the tool has ${plural(validation.errors.length, "error")}: ${first?.field ?? ""} ${first?.message ?? ""}. Correct what is listed under Problems first.`);
    return context;
  }

  async #write(changes: { title?: string; tags: string[]; context: Definition; schema_name?: string }): Promise<Breadcrumb> {
    const base = this.base;
    if (base === undefined) {
      const created = await session.client.createBreadcrumb({ title: this.name, schema_name: "tool.code.v1", ...changes });
      return await session.client.getFullBreadcrumb(created.id);
    }
    try {
      return await session.client.updateBreadcrumb(base.id, base.version, changes);
    } catch (error) {
      if (error instanceof ProblemError && error.problem.code === "version_conflict") this.other = await session.client.getFullBreadcrumb(base.id);
      throw error;
    }
  }

  #based(record: Breadcrumb): void {
    this.base = record;
    this.other = undefined;
    if (!record.tags.includes(DRAFT)) this.published = record.version;
  }

  /** `sent` is the text that was written; what was typed since then stays. */
  #wrote(record: Breadcrumb, done: string, sent = this.text): void {
    this.#based(record);
    this.restored = undefined;
    const text = textOf(record.context);
    // The JSON stays as the person wrote it, if it says the same.
    if (this.text === sent && !isSame(text, sent)) {
      this.text = text;
      this.checks.check(text);
    }
    this.keepNow();
    this.done = done;
  }

  async #act(what: string, act: () => Promise<void>): Promise<boolean> {
    if (this.busy !== "") return false;
    this.busy = what;
    this.error = undefined;
    this.done = "";
    try {
      await act();
      return true;
    } catch (error) {
      session.check(error);
      // The comparison says what happened.
      if (this.other === undefined) this.error = error as Error;
      return false;
    } finally {
      this.busy = "";
    }
  }
}
