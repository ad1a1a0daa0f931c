// {{description}}
//
// Two steps, each triggered by an event (see subscriptions):
// 1. a {{trigger_schema}} is written: the tool writes a {{question_schema}} and ends;
// 2. an agent writes a {{answer_schema}} with the question's context.correlation: the tool writes a
//    {{result_schema}}.
// The correlation is the id of the triggering record. It is the only state, so it does not matter
// how long the answer takes, or which runner handles it.

const TRIGGER = "{{trigger_schema}}";
const QUESTION = "{{question_schema}}";
const ANSWER = "{{answer_schema}}";
const RESULT = "{{result_schema}}";

interface Input {
  breadcrumb_id?: string;
}

interface Output {
  step: "asked" | "finished" | "nothing";
  correlation?: string;
  record_id?: string;
}

interface Breadcrumb {
  id: string;
  title: string;
  schema_name?: string;
  context: Record<string, unknown>;
}

interface Context {
  api: {
    getBreadcrumb(id: string): Promise<Breadcrumb>;
    searchBreadcrumbs(query: { schema_name: string; tag: string; limit: number }): Promise<{ id: string }[]>;
    createBreadcrumb(record: {
      title: string;
      schema_name: string;
      tags: string[];
      context: Record<string, unknown>;
    }): Promise<{ id: string; version: number }>;
  };
  request: { id: string; workspace?: string; trigger_event?: { breadcrumb_id: string; schema_name?: string } };
}

export async function execute(input: Input, context: Context): Promise<Output> {
  // For a direct call, trigger_event is the event of the request itself.
  const event = context.request.trigger_event;
  const triggered = event?.schema_name === "tool.request.v1" ? undefined : event?.breadcrumb_id;
  const id = triggered ?? input.breadcrumb_id;
  if (id === undefined) {
    return { step: "nothing" };
  }
  const record = await context.api.getBreadcrumb(id);
  switch (record.schema_name) {
    case TRIGGER:
      return await ask(record, context);
    case ANSWER:
      return await finish(record, context);
    default:
      return { step: "nothing" };
  }
}

/** Step 1. Writes at most one question per task, because an event can be delivered twice. */
async function ask(task: Breadcrumb, context: Context): Promise<Output> {
  const correlation = task.id;
  if (await isThere(QUESTION, correlation, context)) {
    return { step: "nothing", correlation };
  }
  // Put the work of the first step here.
  const fields = Object.keys(task.context);
  const record_id = await write(QUESTION, `Question about ${task.title}`, correlation, { fields }, context);
  return { step: "asked", correlation, record_id };
}

/** Step 2. Ignores answers without a question, and second answers. */
async function finish(answer: Breadcrumb, context: Context): Promise<Output> {
  const correlation = answer.context.correlation;
  if (typeof correlation !== "string" || !(await isThere(QUESTION, correlation, context))) {
    return { step: "nothing" };
  }
  if (await isThere(RESULT, correlation, context)) {
    return { step: "nothing", correlation };
  }
  const task = await context.api.getBreadcrumb(correlation);
  // Put the work of the second step here.
  const work = { task: task.id, answer: answer.context.answer ?? null };
  const record_id = await write(RESULT, `Result of ${task.title}`, correlation, work, context);
  return { step: "finished", correlation, record_id };
}

async function isThere(schema_name: string, correlation: string, context: Context): Promise<boolean> {
  const found = await context.api.searchBreadcrumbs({ schema_name, tag: tag(correlation), limit: 1 });
  return found.length > 0;
}

async function write(
  schema_name: string,
  title: string,
  correlation: string,
  work: Record<string, unknown>,
  context: Context,
): Promise<string> {
  const workspace = context.request.workspace;
  const record = await context.api.createBreadcrumb({
    title: title.slice(0, 500),
    schema_name,
    tags: [tag(correlation), ...(workspace === undefined ? [] : [workspace])],
    context: { correlation, ...work },
  });
  return record.id;
}

function tag(correlation: string): string {
  return `correlation:${correlation}`;
}
