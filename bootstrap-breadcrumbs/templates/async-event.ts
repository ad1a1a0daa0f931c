// {{description}}
//
// The records that make this tool run are named in subscriptions. What it writes must not match them.

const RESULT_SCHEMA = "{{result_schema}}";

interface Input {
  breadcrumb_id?: string;
}

interface Output {
  handled: boolean;
  result_id?: string;
}

interface Breadcrumb {
  id: string;
  title: string;
  context: Record<string, unknown>;
}

interface Context {
  api: {
    getBreadcrumb(id: string): Promise<Breadcrumb>;
    createBreadcrumb(record: {
      title: string;
      schema_name: string;
      tags: string[];
      context: Record<string, unknown>;
    }): Promise<{ id: string; version: number }>;
  };
  request: { id: string; workspace?: string; trigger_event?: { breadcrumb_id: string } };
}

export async function execute(input: Input, context: Context): Promise<Output> {
  const id = context.request.trigger_event?.breadcrumb_id ?? input.breadcrumb_id;
  if (id === undefined) {
    return { handled: false };
  }
  const record = await context.api.getBreadcrumb(id);
  const workspace = context.request.workspace;
  const result = await context.api.createBreadcrumb({
    title: `Result for ${record.title}`.slice(0, 500),
    schema_name: RESULT_SCHEMA,
    tags: [`source:${id}`, ...(workspace === undefined ? [] : [workspace])],
    // The work goes here.
    context: { source: id, fields: Object.keys(record.context) },
  });
  return { handled: true, result_id: result.id };
}
