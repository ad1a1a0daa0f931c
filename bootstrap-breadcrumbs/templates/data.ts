// {{description}}

const SCHEMA = "{{schema}}";

interface Input {
  group_by?: string;
  limit?: number;
}

interface Output {
  total: number;
  groups: Record<string, number>;
}

interface Item {
  id: string;
  context?: Record<string, unknown>;
}

interface Context {
  api: {
    searchBreadcrumbs(query: { schema_name: string; limit: number; include_context: boolean }): Promise<Item[]>;
  };
}

export async function execute(input: Input, context: Context): Promise<Output> {
  const { group_by: field = "status", limit = 500 } = input;
  const items = await context.api.searchBreadcrumbs({ schema_name: SCHEMA, limit, include_context: true });
  const groups = new Map<string, number>();
  for (const item of items) {
    const value = String(item.context?.[field] ?? "none");
    groups.set(value, (groups.get(value) ?? 0) + 1);
  }
  return { total: items.length, groups: Object.fromEntries(groups) };
}
