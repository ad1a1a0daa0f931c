// Runs tools in steps. A step can use the outputs of others: "${search.items[0].url}". Steps that
// do not depend on each other run at the same time. The whole workflow is checked before a step
// runs.

/** The most characters of a step's output. */
const MAX_RESULT_CHARS = 4_000_000;
const MAX_SHOWN = 200;

type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
type Key = string | number;

interface Step {
  id: string;
  tool: string;
  input?: Json;
  dependencies?: string[];
  timeout_ms?: number;
}

interface Input {
  steps: Step[];
  returnStep?: string;
  continueOnError?: boolean;
  max_parallel?: number;
}

interface StepError {
  path: string;
  tool: string;
  code: string;
  message: string;
}

interface Output {
  results: Record<string, Json>;
  errors: Record<string, StepError>;
  executionOrder: string[];
  result?: Json;
}

/** What `callTool` throws. An error of the runtime has only a name and a message. */
interface CallError extends Error {
  code?: string;
  reason?: string;
}

interface Context {
  api: {
    callTool(tool: string, input: Json, options: { max_result_chars: number; timeout_ms?: number }): Promise<Json>;
  };
  progress(fraction: number, message: string): void;
}

/** A text between templates, or a template: a step, and where in its output. */
type Part = string | { text: string; step: string; keys: Key[] };

/** A step that failed. */
class Failed extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly path: string,
  ) {
    super(message);
  }
}

const TEMPLATE = /^([A-Za-z][\w-]*)((?:\.[^.[\]{}]+|\[\d+\]|\["[^"]*"\])*)$/;
const KEY = /\.([^.[\]{}]+)|\[(\d+)\]|\["([^"]*)"\]/g;

/** The parts of a text. `$${` stands for `${`. */
function parts(text: string, path: string): Part[] {
  const found: Part[] = [];
  let literal = "";
  for (let at = 0; at < text.length; ) {
    if (text.startsWith("$${", at)) {
      literal += "${";
      at += 3;
    } else if (text.startsWith("${", at)) {
      const end = text.indexOf("}", at);
      const inside = end === -1 ? text.slice(at + 2) : text.slice(at + 2, end);
      const match = TEMPLATE.exec(inside.trim());
      if (end === -1 || match === null) {
        const problem = end === -1 ? "has no }" : "is not a template such as ${step.field[0]}";
        const found = JSON.stringify(text.slice(at, at + MAX_SHOWN).toWellFormed());
        throw new Error(`${path}: ${found} ${problem}; write $\${ for the text \${`);
      }
      const keys = [...match[2].matchAll(KEY)].map(([, name, index, quoted]) => name ?? quoted ?? Number(index));
      found.push(literal, { text: text.slice(at, end + 1), step: match[1], keys });
      literal = "";
      at = end + 1;
    } else {
      literal += text[at++];
    }
  }
  return [...found, literal].filter((part) => part !== "");
}

/** Replaces each text in the value. */
function mapped(value: Json, path: string, replace: (text: string, path: string) => Json): Json {
  if (typeof value === "string") {
    return replace(value, path);
  }
  if (Array.isArray(value)) {
    return value.map((item, index) => mapped(item, `${path}[${index}]`, replace));
  }
  if (typeof value === "object" && value !== null) {
    const items = Object.entries(value);
    return Object.fromEntries(items.map(([name, item]) => [name, mapped(item, `${path}.${name}`, replace)]));
  }
  return value;
}

/** The steps that each step waits for. Throws with all that is wrong. */
function dependencies(steps: Step[], returnStep: string | undefined): Map<string, Set<string>> {
  const problems: string[] = [];
  const needs = new Map<string, Set<string>>();
  steps.forEach((step, index) => {
    if (needs.has(step.id)) {
      problems.push(`steps[${index}].id: there is another step ${JSON.stringify(step.id)}`);
    }
    needs.set(step.id, new Set(step.dependencies));
  });
  const known = (id: string, path: string): void => {
    if (!needs.has(id)) {
      problems.push(`${path}: there is no step ${JSON.stringify(id)}`);
    }
  };
  steps.forEach((step, index) => {
    step.dependencies?.forEach((id, at) => known(id, `steps[${index}].dependencies[${at}]`));
    mapped(step.input ?? {}, `steps[${index}].input`, (text, path) => {
      try {
        for (const part of parts(text, path)) {
          if (typeof part !== "string") {
            known(part.step, `${path}: ${part.text}`);
            needs.get(step.id)?.add(part.step);
          }
        }
      } catch (error) {
        problems.push((error as Error).message);
      }
      return text;
    });
  });
  if (returnStep !== undefined) {
    known(returnStep, "returnStep");
  }
  if (problems.length === 0) {
    problems.push(...circles(needs));
  }
  if (problems.length > 0) {
    throw new Error(`the workflow is not valid, and no step ran: ${problems.join("; ")}`);
  }
  return needs;
}

/** The steps that can never start, because they wait for each other. */
function circles(needs: Map<string, Set<string>>): string[] {
  const left = new Map(needs);
  for (;;) {
    const ready = [...left].filter(([, before]) => [...before].every((id) => !left.has(id)));
    if (ready.length === 0) {
      break;
    }
    ready.forEach(([id]) => left.delete(id));
  }
  return left.size === 0 ? [] : [`the steps ${[...left.keys()].join(", ")} wait for each other`];
}

/** The input with outputs in place of templates. A text that is one template keeps the type. */
function filled(step: Step, path: string, results: Record<string, Json>): Json {
  return mapped(step.input ?? {}, `${path}.input`, (text, at) => {
    const values = parts(text, at).map((part) => (typeof part === "string" ? part : valueOf(part, at, results)));
    if (values.length === 1) {
      return values[0];
    }
    return values.map((value) => (typeof value === "string" ? value : JSON.stringify(value))).join("");
  });
}

function valueOf(part: Exclude<Part, string>, at: string, results: Record<string, Json>): Json {
  let value: Json = results[part.step];
  for (const key of part.keys) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) {
      const found = JSON.stringify(value).slice(0, MAX_SHOWN).toWellFormed();
      throw new Failed("InvalidArguments", `${part.text}: there is no ${JSON.stringify(key)} in ${found}`, at);
    }
    value = (value as Record<Key, Json>)[key];
  }
  return value;
}

async function run(step: Step, path: string, results: Record<string, Json>, api: Context["api"]): Promise<Json> {
  const { tool, timeout_ms } = step;
  const input = filled(step, path, results);
  try {
    return await api.callTool(tool, input, { max_result_chars: MAX_RESULT_CHARS, timeout_ms });
  } catch (error) {
    const { code, reason, name, message } = error as CallError;
    throw new Failed(code ?? name, reason ?? message, path);
  }
}

export async function execute(input: Input, context: Context): Promise<Output> {
  const { steps, returnStep, continueOnError = false, max_parallel = 4 } = input;
  const needs = dependencies(steps, returnStep);
  // Without a prototype: a step can have the name of a property that each object inherits.
  const output: Output = { results: Object.create(null), errors: Object.create(null), executionOrder: [] };
  const { results, errors, executionOrder } = output;
  const waiting = new Set(steps.keys());
  const running = new Map<number, Promise<void>>();

  const fail = (index: number, error: unknown): void => {
    const { id, tool } = steps[index];
    const failed = error instanceof Failed ? error : new Failed("ExecutionFailed", String(error), `steps[${index}]`);
    errors[id] = { path: failed.path, tool, code: failed.code, message: failed.message };
  };
  const start = async (index: number): Promise<void> => {
    const { id } = steps[index];
    executionOrder.push(id);
    try {
      results[id] = await run(steps[index], `steps[${index}]`, results, context.api);
    } catch (error) {
      fail(index, error);
    }
    running.delete(index);
    context.progress((Object.keys(results).length + Object.keys(errors).length) / steps.length, `ended ${id}`);
  };

  for (;;) {
    for (const index of waiting) {
      const before = [...(needs.get(steps[index].id) ?? [])];
      const failed = before.find((id) => id in errors);
      if (failed !== undefined) {
        waiting.delete(index);
        const message = `the step ${JSON.stringify(failed)}, which it needs, failed`;
        fail(index, new Failed("Skipped", message, `steps[${index}]`));
      } else if (running.size < max_parallel && before.every((id) => id in results)) {
        waiting.delete(index);
        running.set(index, start(index));
      }
    }
    if (running.size === 0) {
      break;
    }
    await Promise.race(running.values());
    if (!continueOnError && Object.keys(errors).length > 0) {
      // What runs is not left behind.
      await Promise.all(running.values());
      break;
    }
  }

  const first = Object.values(errors)[0];
  if (first !== undefined && !continueOnError) {
    const done = Object.keys(results).join(", ") || "none";
    const { path, tool, code, message } = first;
    throw new Error(`${path} (${tool}) failed with ${code}: ${message}; steps that succeeded: ${done}`);
  }
  if (returnStep !== undefined && returnStep in results) {
    output.result = results[returnStep];
  }
  return output;
}
