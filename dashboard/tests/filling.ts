/** Writes finished calls by SQL, as a store with many calls has them: thousands in a second. */
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/** How many calls one transaction can number: each is two events. */
const BATCH = 2000;

export interface Filling {
  tool: string;
  session: string;
}

/** Writes `many` finished calls into the store of the server with this data folder. */
export async function writeCalls(data: string, many: number, { tool, session }: Filling): Promise<void> {
  const parts = Array.from({ length: Math.ceil(many / BATCH) }, (_, at) => Math.min(BATCH, many - at * BATCH));
  await sql(data, parts.map((calls) => statement(calls, tool, session)).join("\n"));
}

/** Runs SQL in the embedded Postgres of a running server, with the `psql` beside its program. */
async function sql(data: string, text: string): Promise<void> {
  const cluster = join(data, "postgres");
  const [, , , port = "", folder = ""] = readFileSync(join(cluster, "postmaster.pid"), "utf8").split("\n");
  const program = readFileSync(join(cluster, "postmaster.opts"), "utf8").split(' "')[0] ?? "";
  const options = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", `--host=${folder}`, `--port=${port}`, "--username=postgres", "--dbname=rcrt"];
  await new Promise<void>((resolve, reject) => {
    const child = execFile(join(dirname(program), "psql"), options, (error) => (error === null ? resolve() : reject(error)));
    child.stdin?.end(text);
  });
}

/**
 * Requests and responses with their tags, events and calls, in one transaction. Other servers of the
 * database learn of them by NOTIFY, which this server hears too.
 */
function statement(calls: number, tool: string, session: string): string {
  const [name, conversation] = [tool, session].map((text) => `'${text.replaceAll("'", "''")}'`);
  return `WITH agent AS (SELECT owner_id, id FROM agents WHERE name = 'first' AND deleted_at IS NULL),
  pair AS MATERIALIZED (SELECT n, uuidv7() AS request, uuidv7() AS response FROM generate_series(1, ${calls}) n),
  row AS MATERIALIZED (
    SELECT owner_id, agent.id AS agent, request AS id, 2 * n - 2 AS place, 'Call' AS title, 'tool.request.v1' AS schema_name,
      ARRAY['tool:request'] AS tags,
      json_build_object('tool', ${name}, 'input', json_build_object('n', n), 'session', ${conversation}) AS context
    FROM pair, agent
    UNION ALL
    SELECT owner_id, agent.id, response, 2 * n - 1, 'Response', 'tool.response.v1',
      ARRAY['tool:response', 'request:' || request],
      json_build_object('request_id', request, 'tool', ${name}, 'status', 'success', 'output', json_build_object('n', n),
        'metadata', json_build_object('request', request))
    FROM pair, agent),
  record AS (
    INSERT INTO breadcrumbs (id, owner_id, title, context, tags, schema_name, visibility, sensitivity, version, checksum,
      size_bytes, created_at, updated_at, created_by, updated_by, words)
    SELECT id, owner_id, title, context, tags, schema_name, 'team', 'low', 1, encode(sha256(context::text::bytea), 'hex'),
      length(context::text), now(), now(), agent, agent, to_tsvector('english', title) FROM row),
  tag AS (INSERT INTO breadcrumb_tags (owner_id, tag, breadcrumb_id) SELECT owner_id, unnest(tags), id FROM row),
  call AS (
    INSERT INTO calls (request, owner_id, state, tool, request_id, agent_id, session, attempt, response, queued_at, finished_at, run_us)
    SELECT request, owner_id, 'finished', ${name}, request::text, agent.id, ${conversation}, 1, response,
      now() - interval '12 ms', now(), 7000 FROM pair, agent)
  INSERT INTO events (owner_id, number, kind, breadcrumb_id, version, at, size_bytes)
  SELECT owner_id, event_number(place), 'breadcrumb.created', id, 1, now(), length(context::text) FROM row;
SELECT pg_notify('rcrt_events', owner_id || ' ' || gen_random_uuid()) FROM agents WHERE name = 'first' AND deleted_at IS NULL \\g /dev/null`;
}
