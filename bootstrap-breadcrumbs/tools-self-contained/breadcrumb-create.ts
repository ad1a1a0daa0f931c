// Creates a breadcrumb in the caller's tenant.

interface Input {
  title: string;
  context?: Record<string, unknown>;
  tags?: string[];
  schema_name?: string;
  description?: string;
  semantic_version?: string;
}

interface Created {
  id: string;
  version: number;
}

interface Context {
  api: { createBreadcrumb(record: Input): Promise<Created> };
}

export async function execute(input: Input, context: Context): Promise<Created> {
  const { id, version } = await context.api.createBreadcrumb(input);
  return { id, version };
}
