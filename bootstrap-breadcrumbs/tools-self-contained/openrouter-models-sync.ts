// Keeps one openrouter.models.catalog.v1 record with the models that OpenRouter offers.

const SCHEMA = "openrouter.models.catalog.v1";
const TAG = "openrouter:models";
const URL_OF_MODELS = "https://openrouter.ai/api/v1/models";
const FRESH_MS = 24 * 60 * 60 * 1000;
const TIMEOUT_MS = 30_000;
const MAX_ATTEMPTS = 4;
const MAX_PAUSE_MS = 8_000;
const MAX_BYTES = 9 * 1024 * 1024;
const MAX_MODELS = 2000;
const MAX_TEXT = 300;
const MAX_WRITES = 5;

interface Input {
  force_refresh?: boolean;
}

interface Output {
  models_count: number;
  catalog_id: string;
  last_updated: string;
  status: "created" | "updated" | "unchanged" | "fresh";
  message: string;
}

interface Model {
  id: string;
  name: string;
  context_length: number | null;
  max_completion_tokens: number | null;
  input_modalities: string[];
  supports_tools: boolean;
  /** US dollars for one token. */
  pricing: { prompt: number | null; completion: number | null };
}

interface Catalog {
  id: string;
  version: number;
  context: { models?: unknown[]; last_updated?: unknown };
}

interface Context {
  api: {
    searchBreadcrumbs(query: Record<string, unknown>): Promise<Catalog[]>;
    createBreadcrumb(record: Record<string, unknown>): Promise<{ id: string; version: number }>;
    updateBreadcrumb(id: string, version: number, changes: Record<string, unknown>): Promise<{ version: number }>;
    deleteBreadcrumb(id: string): Promise<unknown>;
  };
  progress(fraction: number | null, message: string): void;
}

/** The response's JSON. Tries again after 429 and 5xx. */
async function fetchModels(context: Context): Promise<unknown> {
  const ends = Date.now() + TIMEOUT_MS;
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  for (let attempt = 1; ; attempt++) {
    const response = await fetch(URL_OF_MODELS, { headers: { accept: "application/json" }, signal });
    if (response.ok) {
      return JSON.parse(await boundedText(response));
    }
    await response.body?.cancel();
    const problem = `OpenRouter answered ${response.status}`;
    const wait = pause(response, attempt);
    const isTemporary = response.status === 429 || response.status >= 500;
    if (!isTemporary || attempt === MAX_ATTEMPTS || Date.now() + wait >= ends) {
      throw new Error(`${problem}; the catalog was not changed`);
    }
    context.progress(null, `${problem}; attempt ${attempt + 1} in ${wait} ms`);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

/** What Retry-After asks for, else a growing time. */
function pause(response: Response, attempt: number): number {
  const header = response.headers.get("retry-after")?.trim() ?? "";
  const asked = /^\d+$/.test(header) ? Number(header) * 1000 : Date.parse(header) - Date.now();
  return Number.isNaN(asked) ? Math.min(500 * 2 ** (attempt - 1), MAX_PAUSE_MS) : Math.max(0, asked);
}

async function boundedText(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let [text, received] = ["", 0];
  for await (const piece of response.body ?? []) {
    received += piece.byteLength;
    if (received > MAX_BYTES) {
      throw new Error(`OpenRouter sent more than ${MAX_BYTES} bytes; the catalog was not changed`);
    }
    text += decoder.decode(piece, { stream: true });
  }
  return text + decoder.decode();
}

const number = (value: unknown): number | null => {
  const read = typeof value === "string" && value !== "" ? Number(value) : value;
  return typeof read === "number" && Number.isFinite(read) && read >= 0 ? read : null;
};

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "string").slice(0, 20) : [];

/** The fields that a caller needs to choose a model, sorted by id. */
function readModels(answer: unknown): Model[] {
  const data = (answer as { data?: unknown } | null)?.data;
  if (!Array.isArray(data) || data.length === 0) {
    throw new Error("OpenRouter sent no list of models; the catalog was not changed");
  }
  const models = new Map<string, Model>();
  for (const one of data.slice(0, MAX_MODELS)) {
    if (typeof one?.id !== "string" || one.id === "" || one.id.length > MAX_TEXT) {
      continue;
    }
    models.set(one.id, {
      id: one.id,
      name: typeof one.name === "string" ? one.name.slice(0, MAX_TEXT) : one.id,
      context_length: number(one.context_length),
      max_completion_tokens: number(one.top_provider?.max_completion_tokens),
      input_modalities: texts(one.architecture?.input_modalities),
      supports_tools: Array.isArray(one.supported_parameters) && one.supported_parameters.includes("tools"),
      pricing: { prompt: number(one.pricing?.prompt), completion: number(one.pricing?.completion) },
    });
  }
  return [...models.values()].sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** The catalog. Of two that were created at once, the one with the lowest id stays. */
async function existing(context: Context): Promise<Catalog | undefined> {
  const query = { schema_name: SCHEMA, tag: TAG, limit: 20, include_context: true };
  const found = (await context.api.searchBreadcrumbs(query)).sort((a, b) => (a.id < b.id ? -1 : 1));
  for (const other of found.slice(1)) {
    await context.api.deleteBreadcrumb(other.id).catch((error) => {
      if (error?.name !== "NotFound") {
        throw error;
      }
    });
  }
  return found[0];
}

/** Creates or changes the catalog. Returns it, and the one that it replaced. */
async function write(
  record: { title: string; tags: string[]; context: object },
  context: Context,
): Promise<{ id: string; before?: Catalog }> {
  let created: string | undefined;
  for (let attempt = 1; attempt <= MAX_WRITES; attempt++) {
    const before = await existing(context);
    if (before === undefined) {
      created = (await context.api.createBreadcrumb({ schema_name: SCHEMA, ...record })).id;
      continue;
    }
    if (before.id === created) {
      return { id: created };
    }
    try {
      await context.api.updateBreadcrumb(before.id, before.version, record);
      return { id: before.id, before };
    } catch (error) {
      // Another call wrote it first.
      if (!(error instanceof Error) || !["VersionConflict", "NotFound"].includes(error.name)) {
        throw error;
      }
    }
  }
  throw new Error(`the catalog was changed by others during ${MAX_WRITES} attempts`);
}

/** The order of an object's members does not matter: the store may change it. */
function equal(one: unknown, other: unknown): boolean {
  const sorted = (_: string, value: unknown): unknown =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return JSON.stringify(one, sorted) === JSON.stringify(other, sorted);
}

export async function execute(input: Input, context: Context): Promise<Output> {
  const there = await existing(context);
  const updated = there?.context.last_updated;
  if (there && typeof updated === "string" && !input.force_refresh && Date.now() - Date.parse(updated) < FRESH_MS) {
    const message = `the catalog is from ${updated}; force_refresh reads it again`;
    const models_count = there.context.models?.length ?? 0;
    return { models_count, catalog_id: there.id, last_updated: updated, status: "fresh", message };
  }
  const models = readModels(await fetchModels(context));
  const [last_updated, total_count] = [new Date().toISOString(), models.length];
  const { id, before } = await write(
    {
      title: "Models of OpenRouter",
      tags: [TAG, "workspace:tools"],
      context: { models, last_updated, source: URL_OF_MODELS, total_count, sync_tool: "openrouter-models-sync" },
    },
    context,
  );
  const output = { models_count: total_count, catalog_id: id, last_updated };
  if (before === undefined) {
    return { ...output, status: "created", message: `created with ${total_count} models` };
  }
  if (equal(before.context.models, models)) {
    return { ...output, status: "unchanged", message: `the ${total_count} models are the same` };
  }
  const count = before.context.models?.length ?? 0;
  return { ...output, status: "updated", message: `${count} models before, ${total_count} now` };
}
