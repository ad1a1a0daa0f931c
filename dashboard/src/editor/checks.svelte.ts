/** Checks a tool while it is written: by TypeScript in a worker, and by the server's validators. */
import { session } from "../lib/session.svelte";
import { canonical, contextOf, type Definition, type ToolText, parse } from "./definition";
import { Checker } from "./checker";
import { ofTypes, ofValidator, type Finding } from "./findings";

/** After the last key. */
const TYPES_MS = 300;
const VALIDATOR_MS = 500;

export class Checks {
  readonly checker = new Checker();
  /** Of the types, and of the validators. */
  #typed = $state.raw<Finding[]>([]);
  #validated = $state.raw<Finding[]>([]);
  #running = $state(0);
  /** Whether something waits to be checked. */
  #isDue = $state(true);
  #failures = $state({ types: "", validator: "" });
  #text: ToolText = { json: "", source: "" };
  #shared: Promise<string> | undefined;
  /** The fields of the definition that the types come from, and the types. */
  #own = { of: "", types: "" };
  #timers: ReturnType<typeof setTimeout>[] = [];
  #controller = new AbortController();

  get findings(): Finding[] {
    return [...this.#typed, ...this.#validated];
  }

  get errors(): number {
    return this.findings.filter((finding) => finding.severity === "error").length;
  }

  get warnings(): number {
    return this.findings.length - this.errors;
  }

  /** Why a check could not be made. */
  get failed(): string {
    return this.#failures.validator || this.#failures.types;
  }

  get busy(): boolean {
    return this.#running > 0 || this.#isDue;
  }

  /** Checks this text soon, instead of an earlier one. */
  check(text: ToolText): void {
    this.#text = text;
    this.#stop();
    this.#isDue = true;
    const signal = this.#controller.signal;
    const types = setTimeout(() => void this.#run("types", this.#types(text, signal), signal), TYPES_MS);
    const validator = setTimeout(() => {
      void this.#run("validator", this.#validate(text, signal), signal);
      this.#isDue = false;
    }, VALIDATOR_MS);
    this.#timers = [types, validator];
  }

  close(): void {
    this.#stop();
    this.checker.close();
  }

  #stop(): void {
    this.#timers.forEach(clearTimeout);
    this.#controller.abort();
    this.#controller = new AbortController();
  }

  async #run(what: "types" | "validator", check: Promise<void>, signal: AbortSignal): Promise<void> {
    this.#running++;
    try {
      await check;
      this.#failures[what] = "";
    } catch (error) {
      // Another check has begun since.
      if (signal.aborted) return;
      session.check(error);
      this.#failures[what] = (error as Error).message;
    } finally {
      this.#running--;
    }
  }

  async #types(text: ToolText, signal: AbortSignal): Promise<void> {
    const definition = parse(text.json).value;
    if (definition !== undefined) await this.#declare(definition, signal);
    if (signal.aborted) return;
    await this.checker.source(text.source, isTyped(definition));
    const found = await this.checker.problems();
    if (!signal.aborted) this.#typed = ofTypes(found, text.source);
  }

  /** Gives the checker the types of the schemas, if those changed. */
  async #declare(definition: Definition, signal: AbortSignal): Promise<void> {
    const { input_schema, output_schema, required_secrets } = definition;
    const of = canonical({ input_schema, output_schema, required_secrets });
    if (of === this.#own.of) return;
    this.#shared ??= session.client.toolTypes();
    // The next check tries again.
    this.#shared.catch(() => (this.#shared = undefined));
    const spec = JSON.parse(of) as Definition;
    const [shared, types] = await Promise.all([this.#shared, session.client.toolTypes(spec, { signal })]);
    this.#own = { of, types };
    await this.checker.types(shared, types);
  }

  async #validate(text: ToolText, signal: AbortSignal): Promise<void> {
    const { value, wrong } = parse(text.json);
    if (value === undefined) {
      this.#validated = [{ severity: "error", where: "json", place: "the definition", message: wrong, source: "JSON", from: 0, to: 0 }];
      return;
    }
    const { validation } = await session.client.validateTool(contextOf(value, text.source), { signal });
    if (signal.aborted) return;
    this.#validated = [...ofValidator(validation.errors as never, "error", text.source, text.json), ...ofValidator(validation.warnings as never, "warning", text.source, text.json)];
  }

  isTyped = (): boolean => isTyped(parse(this.#text.json).value);
}

export function isTyped(definition: Definition | undefined): boolean {
  return (definition?.["code"] as { language?: unknown } | undefined)?.language !== "javascript";
}
