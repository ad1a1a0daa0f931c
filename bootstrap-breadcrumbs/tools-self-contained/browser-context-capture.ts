// Stores what a browser extension captured of a page, as one browser.tab.context.v1 record for each
// tab. Text is cleaned and bounded, and what could identify or authorize the person is left out.

const SCHEMA = "browser.tab.context.v1";
const MAX_SELECTION = 5_000;
const MAX_LINE = 500;
const MAX_ITEMS = 200;
const MAX_CHANGED_LINES = 10;
const MAX_WRITES = 5;
/** Parameters that follow a person from page to page. */
const TRACKING = /^(utm_.*|gclid|dclid|fbclid|msclkid|yclid|igshid|mc_[ce]id|_ga|_gl|ref_src)$/i;
/** Parameters that let others act as the person. */
const PRIVATE =
  /(^|[_-])(token|auth|(api)?key|secret|password|passwd|pwd|session(id)?|sid|sig|signature|code|otp|jwt)$/i;
/**
 * Characters that cannot be seen: pages hide instructions for models in them. The two joiners stay,
 * because emoji and some scripts need them.
 */
const INVISIBLE = /[^\P{Cf}\u200c\u200d]|[\p{Cc}\p{Co}]/gu;
/** The tags that tell one tab's record from another's. */
const IDENTIFYING = /^(tab|page|browser|session):/;

interface Structure {
  headings?: { level: number; text: string }[];
  links?: { text?: string; url: string }[];
  fields?: { name?: string; type?: string; label?: string }[];
}

interface Input {
  url: string;
  title?: string;
  text?: string;
  selection?: string;
  structure?: Structure;
  screenshot?: string;
  tab_id?: string | number;
  browser_id?: string;
  session_id?: string;
  ttl_minutes?: number;
  max_text_chars?: number;
}

interface Page extends Record<string, unknown> {
  url: string;
  domain: string;
  title: string;
  text: string;
  selection: string;
  structure: { headings: unknown[]; links: unknown[]; fields: unknown[] };
  screenshot: string | null;
}

interface Found {
  id: string;
  tags: string[];
  version: number;
  context: Record<string, unknown>;
}

interface Context {
  api: {
    searchBreadcrumbs(query: Record<string, unknown>): Promise<Found[]>;
    createBreadcrumb(record: Record<string, unknown>): Promise<{ id: string; version: number }>;
    updateBreadcrumb(id: string, version: number, changes: Record<string, unknown>): Promise<{ version: number }>;
    deleteBreadcrumb(id: string): Promise<unknown>;
  };
}

interface Changes {
  navigated: boolean;
  fields: string[];
  lines_added: number;
  lines_removed: number;
  added: string[];
  removed: string[];
}

interface Output {
  breadcrumb_id: string;
  version: number;
  status: "created" | "updated" | "unchanged";
  url: string;
  expires_at: string;
  changes: Changes;
  cut: string[];
  removed_parameters: string[];
}

/** Cleans what a page says, and notes what was cut or removed. */
class Cleaner {
  readonly cut: string[] = [];
  readonly removed = new Set<string>();

  /** Lines without invisible characters, needless spaces and empty lines. */
  text(field: string, text: string | undefined, most: number): string {
    const lines = (text ?? "").toWellFormed().normalize("NFC").split(/\r\n|[\n\r\u0085\u2028\u2029]/);
    const clean = lines.map((line) => line.replaceAll("\t", " ").replace(INVISIBLE, "").replace(/\s+/gu, " ").trim());
    return this.bounded(field, clean.filter((line) => line !== "").join("\n"), most);
  }

  line(field: string, text: string | undefined): string {
    return this.bounded(field, this.text(field, text, Infinity).replaceAll("\n", " "), MAX_LINE);
  }

  /** The address without what identifies a person or a place on the page. */
  url(text: string): string | undefined {
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (url === undefined || !["http:", "https:"].includes(url.protocol)) {
      return undefined;
    }
    url.username = "";
    url.password = "";
    url.hash = "";
    for (const name of new Set(url.searchParams.keys())) {
      if (TRACKING.test(name) || PRIVATE.test(name)) {
        this.removed.add(name.slice(0, 100));
        url.searchParams.delete(name);
      }
    }
    return url.href;
  }

  list<T, C>(field: string, items: T[] | undefined, clean: (item: T) => C | undefined): C[] {
    const seen = new Map<string, C>();
    for (const item of items ?? []) {
      const one = clean(item);
      if (one !== undefined) {
        seen.set(JSON.stringify(one), one);
      }
    }
    if (seen.size > MAX_ITEMS) {
      this.note(field);
    }
    return [...seen.values()].slice(0, MAX_ITEMS);
  }

  private bounded(field: string, text: string, most: number): string {
    if (text.length <= most) {
      return text;
    }
    this.note(field);
    return text.slice(0, most).toWellFormed();
  }

  private note(field: string): void {
    if (!this.cut.includes(field)) {
      this.cut.push(field);
    }
  }
}

function cleaned(input: Input, cleaner: Cleaner): Page {
  const url = cleaner.url(input.url);
  if (url === undefined) {
    throw new Error("url: only pages with an http or https address are stored");
  }
  if (input.screenshot?.trim().toLowerCase().startsWith("data:")) {
    throw new Error("screenshot: store the image elsewhere, and give its id or address");
  }
  const { headings, links, fields } = input.structure ?? {};
  return {
    url,
    domain: new URL(url).hostname,
    title: cleaner.line("title", input.title),
    text: cleaner.text("text", input.text, input.max_text_chars ?? 20_000),
    selection: cleaner.text("selection", input.selection, MAX_SELECTION),
    structure: {
      headings: cleaner.list("structure.headings", headings, ({ level, text }) => {
        const clean = cleaner.line("structure.headings", text);
        return clean === "" ? undefined : { level, text: clean };
      }),
      links: cleaner.list("structure.links", links, (link) => {
        const address = cleaner.url(link.url);
        return address && { text: cleaner.line("structure.links", link.text), url: address };
      }),
      // Never what a person typed into them.
      fields: cleaner.list("structure.fields", fields, ({ name, type, label }) => ({
        name: cleaner.line("structure.fields", name),
        type: cleaner.line("structure.fields", type),
        label: cleaner.line("structure.fields", label),
      })),
    },
    screenshot: input.screenshot === undefined ? null : cleaner.line("screenshot", input.screenshot),
  };
}

/** What the page has now and did not have at the last capture. */
function changesOf(page: Page, before: Record<string, unknown> | undefined): Changes {
  const lines = (text: unknown): string[] => (typeof text === "string" && text !== "" ? text.split("\n") : []);
  const [old, now] = [new Set(lines(before?.text)), new Set(lines(page.text))];
  const added = [...now].filter((line) => !old.has(line));
  const removed = [...old].filter((line) => !now.has(line));
  const shown = (all: string[]): string[] =>
    all.slice(0, MAX_CHANGED_LINES).map((line) => line.slice(0, MAX_LINE).toWellFormed());
  const differs = (field: string): boolean => !equal(page[field], before?.[field]);
  return {
    navigated: before !== undefined && differs("url"),
    fields: before === undefined ? [] : Object.keys(page).filter(differs),
    lines_added: added.length,
    lines_removed: removed.length,
    added: shown(added),
    removed: shown(removed),
  };
}

/** The order of an object's members does not matter: the store may change it. */
function equal(one: unknown, other: unknown): boolean {
  const sorted = (_: string, value: unknown): unknown =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value;
  return JSON.stringify(one, sorted) === JSON.stringify(other, sorted);
}

/** The tag of the tab, else of the page. */
async function identity(input: Input, url: string): Promise<string> {
  if (input.tab_id !== undefined) {
    return `tab:${input.tab_id}`;
  }
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(url));
  return `page:${new Uint8Array(digest).toHex().slice(0, 32)}`;
}

/** The record of the tab. Of two that were created at once, the one with the lowest id stays. */
async function existing(tags: string[], context: Context): Promise<Found | undefined> {
  const query = { schema_name: SCHEMA, all_tags: tags, limit: 100, include_context: true };
  const found = await context.api.searchBreadcrumbs(query);
  // The same tab number in another browser or session has more such tags.
  const same = found.filter((one) => one.tags.filter((tag) => IDENTIFYING.test(tag)).length === tags.length);
  const [kept, ...others] = same.sort((a, b) => (a.id < b.id ? -1 : 1));
  for (const other of others) {
    await context.api.deleteBreadcrumb(other.id).catch((error) => {
      if (error?.name !== "NotFound") {
        throw error;
      }
    });
  }
  return kept;
}

export async function execute(input: Input, context: Context): Promise<Output> {
  const cleaner = new Cleaner();
  const page = cleaned(input, cleaner);
  const { session_id, ttl_minutes = 60 } = input;
  const session = session_id?.startsWith("session:") ? session_id : session_id && `session:${session_id}`;
  const browser = input.browser_id === undefined ? [] : [`browser:${input.browser_id}`];
  const identified = [await identity(input, page.url), ...browser, ...(session ? [session] : [])];
  const now = new Date();
  const record = {
    title: `Page: ${page.title || page.domain}`.slice(0, 300).toWellFormed(),
    tags: ["tab-context", `domain:${page.domain}`.slice(0, 200), ...identified],
    context: { ...page, captured_at: now.toISOString() },
    ttl_type: "duration",
    ttl_config: { duration: ttl_minutes * 60 },
  };
  const output = {
    url: page.url,
    expires_at: new Date(now.getTime() + ttl_minutes * 60_000).toISOString(),
    cut: cleaner.cut,
    removed_parameters: [...cleaner.removed],
  };
  let created: string | undefined;
  for (let attempt = 1; attempt <= MAX_WRITES; attempt++) {
    const before = await existing(identified, context);
    if (before === undefined) {
      created = (await context.api.createBreadcrumb({ schema_name: SCHEMA, ...record })).id;
      continue;
    }
    if (before.id === created) {
      const changes = changesOf(page, undefined);
      return { breadcrumb_id: before.id, version: before.version, status: "created", ...output, changes };
    }
    const changes = changesOf(page, before.context);
    const status = changes.fields.length > 0 ? "updated" : "unchanged";
    try {
      // Also when nothing changed: the record lives on.
      const { version } = await context.api.updateBreadcrumb(before.id, before.version, record);
      return { breadcrumb_id: before.id, version, status, ...output, changes };
    } catch (error) {
      // Another capture of the tab came first.
      if (!(error instanceof Error) || !["VersionConflict", "NotFound"].includes(error.name)) {
        throw error;
      }
    }
  }
  throw new Error(`the tab's record was changed by others during ${MAX_WRITES} attempts`);
}
