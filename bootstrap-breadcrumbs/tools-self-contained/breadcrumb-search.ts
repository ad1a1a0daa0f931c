// Finds breadcrumbs in the caller's tenant by tag, schema and context.

interface Query {
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
  api: { searchBreadcrumbs(query: Query): Promise<unknown[]> };
}

export async function execute(input: Query, context: Context): Promise<Output> {
  const breadcrumbs = await context.api.searchBreadcrumbs({ limit: 20, ...input });
  return { count: breadcrumbs.length, breadcrumbs };
}
