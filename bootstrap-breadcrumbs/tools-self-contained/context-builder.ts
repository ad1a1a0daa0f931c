// Assembles what an agent's model reads, as one agent.context.v1 record for each agent and session:
// the record that triggered it, pinned records, the newest of the session, and the best of a
// search.

const SCHEMA = "agent.context.v1";
/** As the records of the runtime, these are found only if they are pinned. */
const NEVER_FOUND = [SCHEMA, "context.blacklist.v1"];
/** The part of the budget that is kept for what the search finds. */
const SEARCH_SHARE = 0.25;
/** The most records that a list can give before the excluded ones are left out. */
const MAX_LISTED = 200;
const MAX_BLACKLISTS = 100;
const MAX_QUESTION = 1000;
const MAX_OMITTED = 100;
const MAX_WRITES = 5;
const TOKEN_METHOD = "estimate: ASCII characters / 4, plus other characters";

interface Selector {
  schema_name?: string;
  any_tags?: string[];
  all_tags?: string[];
  limit?: number;
}

interface Input {
  trigger_id: string;
  consumer_id: string;
  session_id?: string;
  query?: string;
  token_budget?: number;
  recent_limit?: number;
  search_limit?: number;
  pinned?: (string | Selector)[];
  excluded_schemas?: string[];
}

interface Item {
  id: string;
  schema_name: string | null;
  version: number;
  updated_at: string;
}

interface View extends Item {
  title: string;
  tags: string[];
  context: Record<string, unknown>;
}

interface Context {
  api: {
    getBreadcrumb(id: string): Promise<View>;
    viewBreadcrumb(id: string): Promise<View>;
    searchBreadcrumbs(query: Record<string, unknown>): Promise<View[]>;
    vectorSearch(query: Record<string, unknown>): Promise<View[]>;
    createBreadcrumb(record: Record<string, unknown>): Promise<{ id: string; version: number }>;
    updateBreadcrumb(id: string, version: number, changes: Record<string, unknown>): Promise<View>;
    deleteBreadcrumb(id: string): Promise<unknown>;
  };
}

type Source = "trigger" | "pinned" | "recent" | "search";

interface Entry {
  id: string;
  schema_name: string | null;
  title: string;
  source: Source;
  /** Only for a record that was never changed: a view has no other time. */
  created_at?: string;
  updated_at: string;
  content: unknown;
}

interface Omitted {
  id: string;
  source: Source;
  reason: "budget" | "duplicate" | "excluded" | "unreadable";
}

interface Output {
  context_id: string;
  version: number;
  status: "created" | "updated" | "superseded";
  token_estimate: number;
  token_method: string;
  sources_assembled: number;
  sources: Record<Source, number>;
  omitted: Omitted[];
}

function isNamed(error: unknown, ...names: string[]): boolean {
  return error instanceof Error && names.includes(error.name);
}

function tokens(text: string): number {
  const all = [...text].length;
  const other = text.match(/[^\0-\x7f]/gu)?.length ?? 0;
  return Math.ceil((all - other) / 4) + other;
}

/** The collected records: each once, within the budget. */
class Collection {
  readonly entries: Entry[] = [];
  readonly omitted: Omitted[] = [];
  used = 0;
  private readonly ids = new Set<string>();
  private readonly contents = new Set<string>();

  constructor(
    private readonly context: Context,
    private readonly excluded: Set<string>,
  ) {}

  omit(id: string, source: Source, reason: Omitted["reason"]): void {
    if (this.omitted.length < MAX_OMITTED) {
      this.omitted.push({ id, source, reason });
    }
  }

  /** Adds what fits below `limit` tokens. Returns the ones that do not fit. */
  async add(source: Source, ids: string[], limit: number): Promise<string[]> {
    const fresh = [...new Set(ids)].filter((id) => !this.ids.has(id));
    const views = await Promise.all(fresh.map((id) => this.view(id, source)));
    const tooLarge: string[] = [];
    for (const view of views) {
      if (view === undefined) {
        continue;
      }
      if (source !== "trigger" && this.excluded.has(view.schema_name ?? "")) {
        this.omit(view.id, source, "excluded");
        continue;
      }
      const content = JSON.stringify([view.schema_name, view.context]);
      if (this.contents.has(content)) {
        this.ids.add(view.id);
        this.omit(view.id, source, "duplicate");
        continue;
      }
      const entry = entryOf(view, source);
      const cost = tokens(JSON.stringify(entry));
      if (this.used + cost > limit) {
        tooLarge.push(view.id);
        continue;
      }
      this.used += cost;
      this.ids.add(view.id);
      this.contents.add(content);
      this.entries.push(entry);
    }
    return tooLarge;
  }

  /** The record as a model sees it. Undefined if it is gone, or the agent cannot read it. */
  private async view(id: string, source: Source): Promise<View | undefined> {
    try {
      return await this.context.api.viewBreadcrumb(id);
    } catch (error) {
      if (source === "trigger" || !isNamed(error, "NotFound", "PermissionDenied")) {
        throw error;
      }
      this.omit(id, source, "unreadable");
      return undefined;
    }
  }
}

function entryOf(view: View, source: Source): Entry {
  const { id, title, updated_at, context: content } = view;
  const created = view.version === 1 ? { created_at: updated_at } : {};
  return { id, schema_name: view.schema_name ?? null, title, source, ...created, updated_at, content };
}

/** The session's tag: of the input, else of the trigger. */
function sessionTag(input: Input, trigger: View): string | undefined {
  const named = input.session_id ?? trigger.context.session_id ?? trigger.context.session;
  if (typeof named === "string" && named !== "") {
    return named.startsWith("session:") ? named : `session:${named}`;
  }
  return trigger.tags.find((tag) => tag.startsWith("session:"));
}

/** What to search for: the trigger's text, if the input does not say. */
function question(input: Input, trigger: View): string {
  const { content, message, text } = trigger.context;
  const texts = [input.query, content, message, text, trigger.title];
  const found = texts.find((one) => typeof one === "string" && one.trim() !== "") as string | undefined;
  return [...(found ?? "").replaceAll("\0", " ")].slice(0, MAX_QUESTION).join("");
}

async function excludedSchemas(input: Input, context: Context): Promise<Set<string>> {
  const query = { schema_name: "context.blacklist.v1", limit: MAX_BLACKLISTS, include_context: true };
  const lists = await context.api.searchBreadcrumbs(query);
  const named = lists.flatMap((list) => {
    const schemas = list.context?.excluded_schemas;
    return Array.isArray(schemas) ? schemas.map((one) => one?.schema_name ?? one) : [];
  });
  return new Set([...named.filter((name) => typeof name === "string"), ...(input.excluded_schemas ?? [])]);
}

async function pinnedIds(pinned: (string | Selector)[], context: Context): Promise<string[]> {
  const found = pinned.map(async (pin) => {
    if (typeof pin === "string") {
      return [pin];
    }
    const records = await context.api.searchBreadcrumbs({ limit: 5, ...pin });
    return records.map((record) => record.id);
  });
  return (await Promise.all(found)).flat();
}

/** The context that is there already. Of two that were created at once, the lowest id stays. */
async function existing(tags: string[], context: Context): Promise<View | undefined> {
  const query = { schema_name: SCHEMA, all_tags: tags, limit: 100, include_context: true };
  const sessions = (of: string[]): number => of.filter((tag) => tag.startsWith("session:")).length;
  // A context without a session has fewer tags than those of the agent's sessions.
  const found = (await context.api.searchBreadcrumbs(query)).filter((one) => sessions(one.tags) === sessions(tags));
  const [kept, ...others] = found.sort((a, b) => (a.id < b.id ? -1 : 1));
  for (const other of others) {
    await context.api.deleteBreadcrumb(other.id).catch((error) => {
      if (!isNamed(error, "NotFound")) {
        throw error;
      }
    });
  }
  return kept;
}

type Written = Pick<Output, "status" | "context_id" | "version">;

/** Creates the record, or changes it in place. A context of a newer trigger is not replaced. */
async function write(record: { tags: string[]; context: Record<string, unknown> }, context: Context): Promise<Written> {
  let created: string | undefined;
  for (let attempt = 1; ; attempt++) {
    const there = await existing(record.tags, context);
    if (there === undefined && created === undefined) {
      created = (await context.api.createBreadcrumb({ schema_name: SCHEMA, ...record })).id;
      continue;
    }
    if (there === undefined) {
      throw new Error(`the context ${created} was deleted while it was written`);
    }
    const named = { context_id: there.id, version: there.version };
    if (there.id === created) {
      return { ...named, status: "created" };
    }
    if (Date.parse(String(there.context.trigger_updated_at)) > Date.parse(String(record.context.trigger_updated_at))) {
      return { ...named, status: "superseded" };
    }
    try {
      const { version } = await context.api.updateBreadcrumb(there.id, there.version, record);
      return { ...named, version, status: "updated" };
    } catch (error) {
      if (attempt >= MAX_WRITES || !isNamed(error, "VersionConflict", "NotFound")) {
        throw error;
      }
    }
  }
}

export async function execute(input: Input, context: Context): Promise<Output> {
  const { consumer_id, token_budget = 8000, recent_limit = 20, search_limit = 10, pinned = [] } = input;
  const trigger = await context.api.getBreadcrumb(input.trigger_id);
  const session = sessionTag(input, trigger);
  const excluded = await excludedSchemas(input, context);
  const canFind = (item: Item): boolean => ![...NEVER_FOUND, ...excluded].includes(item.schema_name ?? "");
  const ids = (items: Item[], limit: number): string[] => items.filter(canFind).slice(0, limit).map((item) => item.id);

  const collection = new Collection(context, excluded);
  const [tooLarge] = await collection.add("trigger", [trigger.id], token_budget);
  if (tooLarge !== undefined) {
    throw new Error(`token_budget: the trigger alone exceeds ${token_budget} tokens (${TOKEN_METHOD})`);
  }
  for (const id of await collection.add("pinned", await pinnedIds(pinned, context), token_budget)) {
    collection.omit(id, "pinned", "budget");
  }
  const inSession = { tag: session, limit: MAX_LISTED, exclude_runtime: true };
  const listed = session ? await context.api.searchBreadcrumbs(inSession) : [];
  const q = question(input, trigger);
  const asked = { q, nn: 100, include_context: false, exclude_runtime: true };
  const matching = q && search_limit > 0 ? await context.api.vectorSearch(asked) : [];
  const found = ids(matching, search_limit + recent_limit + 1);

  // The session first, without the share of the search. What the search leaves goes to the session.
  const reserved = found.length > 0 ? Math.floor((token_budget - collection.used) * SEARCH_SHARE) : 0;
  const left = await collection.add("recent", ids(listed, recent_limit), token_budget - reserved);
  const known = new Set([...collection.entries.map((entry) => entry.id), ...left]);
  const fresh = found.filter((id) => !known.has(id)).slice(0, search_limit);
  const leftOfSearch = await collection.add("search", fresh, token_budget);
  const leftOfSession = await collection.add("recent", left, token_budget);
  leftOfSession.forEach((id) => collection.omit(id, "recent", "budget"));
  leftOfSearch.forEach((id) => collection.omit(id, "search", "budget"));

  const sources = { trigger: 0, pinned: 0, recent: 0, search: 0 };
  collection.entries.forEach((entry) => sources[entry.source]++);
  const summary = {
    token_estimate: collection.used,
    token_method: TOKEN_METHOD,
    sources_assembled: collection.entries.length,
  };
  const record = {
    title: `Context of ${consumer_id}`,
    tags: ["agent:context", `consumer:${consumer_id}`, ...(session ? [session] : [])],
    context: {
      consumer_id,
      trigger_event_id: trigger.id,
      trigger_updated_at: trigger.updated_at,
      assembled_at: new Date().toISOString(),
      ...summary,
      token_budget,
      breadcrumbs: inReadingOrder(collection.entries),
    },
  };
  return { ...(await write(record, context)), ...summary, sources, omitted: collection.omitted };
}

/** Background first, then the session from its beginning, and the trigger last. */
function inReadingOrder(entries: Entry[]): Entry[] {
  const of = (source: Source): Entry[] => entries.filter((entry) => entry.source === source);
  const session = of("recent").sort((a, b) => Date.parse(a.updated_at) - Date.parse(b.updated_at));
  return [...of("pinned"), ...of("search"), ...session, ...of("trigger")];
}
