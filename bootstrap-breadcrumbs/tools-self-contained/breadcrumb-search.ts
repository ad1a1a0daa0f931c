// Finds breadcrumbs in the caller's tenant: by words and meaning, by tag, schema and context.

interface Input {
  query?: string;
  tag?: string;
  any_tags?: string[];
  all_tags?: string[];
  schema_name?: string;
  context_match?: { path: string; op: string; value?: unknown }[];
  limit?: number;
  offset?: number;
  include_context?: boolean;
}

interface Output {
  count: number;
  breadcrumbs: unknown[];
}

interface Context {
  api: {
    searchBreadcrumbs(query: Record<string, unknown>): Promise<unknown[]>;
    vectorSearch(query: Record<string, unknown>): Promise<unknown[]>;
  };
}

/** The most results of a search by words and meaning. */
const MAX_FOUND = 100;

export async function execute(input: Input, context: Context): Promise<Output> {
  const breadcrumbs = await find(input, context);
  return { count: breadcrumbs.length, breadcrumbs };
}

function find({ query, ...selection }: Input, { api }: Context): Promise<unknown[]> {
  if (query === undefined) {
    return api.searchBreadcrumbs({ limit: 20, ...selection });
  }
  const { limit = 20, offset = 0, include_context = false, ...conditions } = selection;
  if (offset > 0) {
    throw new Error("offset: a search with query returns the best matches and has no pages; leave offset out");
  }
  if (limit > MAX_FOUND) {
    throw new Error(`limit: is ${limit}; a search with query returns at most ${MAX_FOUND} records`);
  }
  // Tools and guides have words of almost every question.
  const exclude_runtime = conditions.schema_name === undefined;
  return api.vectorSearch({ ...conditions, q: query, nn: limit, include_context, exclude_runtime });
}
