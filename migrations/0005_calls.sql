-- The queue of calls: one row per tool.request.v1 and tool.create.request.v1.
--
--     queued ──claim──► claimed ──start──► running ──response──► finished
--        ▲                 │                  │
--        └── lease ended, released, retry ────┘
CREATE TABLE calls (
    owner_id uuid NOT NULL,
    request uuid NOT NULL,
    state text NOT NULL DEFAULT 'queued'
        CHECK (state IN ('queued', 'claimed', 'running', 'finished')),
    -- What a response needs when the request's record is gone.
    creates_tool boolean NOT NULL DEFAULT false,
    tool text NOT NULL,
    request_id text NOT NULL,
    workspace text,
    agent_id uuid,
    session text,
    -- The request whose call wrote this request.
    parent uuid,
    -- Whether that call waits for the response. Then this call ends with it.
    awaited boolean NOT NULL DEFAULT false,
    -- Of the writer and of the calls that led to the request, when it was written. `main` denies
    -- nothing and is left out.
    profiles text[] NOT NULL DEFAULT '{}',
    deadline_at timestamptz,
    -- Attempts that were started.
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    max_attempts integer NOT NULL DEFAULT 1 CHECK (max_attempts >= 1),
    -- The fencing token: grows with every claim; only its newest holder may act.
    fence bigint NOT NULL DEFAULT 0,
    runner_id uuid,
    lease_until timestamptz,
    -- A retry waits until then.
    run_after timestamptz,
    cancel_requested boolean NOT NULL DEFAULT false,
    queued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- Of the last attempt; a claim's time is in its fence.
    started_at timestamptz,
    response uuid,
    finished_at timestamptz,
    -- Why a finished call failed.
    error_code text,
    -- How long the tool ran, in microseconds; NULL if it did not run.
    run_us bigint,
    -- Attempts that ended without a response: an array of objects.
    past_attempts jsonb,
    -- Of a call that no other call made: the calls below it, counted by `count_descendants`.
    descendants integer NOT NULL DEFAULT 0,

    PRIMARY KEY (owner_id, request),
    CHECK ((state IN ('claimed', 'running')) = (lease_until IS NOT NULL)),
    CHECK ((state IN ('claimed', 'running')) = (runner_id IS NOT NULL)),
    CHECK ((state = 'finished') = (response IS NOT NULL)),
    CHECK ((state = 'finished') = (finished_at IS NOT NULL)),
    CHECK (error_code IS NULL OR state = 'finished'),
    CHECK (NOT awaited OR parent IS NOT NULL),
    CHECK (state <> 'running' OR attempt >= 1)
-- A call's row is written up to four times within moments: its page has room for that, and
-- autovacuum comes before a fifth of a large table is dead.
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);
-- Their conditions name columns that a start and a heartbeat do not change, so that those update
-- no index. Only queued calls have neither a runner nor a response. Calls that another call waits
-- for come first: otherwise callers could hold all slots that their own calls need.
CREATE INDEX calls_waiting ON calls (owner_id, awaited DESC, queued_at, request)
    WHERE runner_id IS NULL AND response IS NULL;
CREATE INDEX calls_with_deadline ON calls (owner_id, deadline_at)
    WHERE runner_id IS NULL AND response IS NULL AND deadline_at IS NOT NULL;
CREATE INDEX calls_leased ON calls (owner_id) WHERE runner_id IS NOT NULL;
CREATE UNIQUE INDEX calls_response ON calls (owner_id, response) WHERE response IS NOT NULL;
-- For lists of calls. Lists of all calls use the primary key: the ids of requests grow with time. A
-- successful call that no other call asked for is in neither index.
CREATE INDEX calls_failed ON calls (owner_id, request) WHERE error_code IS NOT NULL;
CREATE INDEX calls_awaited ON calls (owner_id, parent) WHERE awaited AND response IS NULL;
CREATE INDEX calls_with_parent ON calls (owner_id, parent) WHERE parent IS NOT NULL;
-- Most requests have no id of their caller's, and are found by the primary key.
CREATE INDEX calls_request_id ON calls (owner_id, request_id) WHERE request_id <> request::text;
ALTER TABLE calls ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON calls
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON calls TO rcrt_app;

-- The live runners, with what each last reported. The write of a tool waits until each has applied
-- its event. Unlogged: after a crash, every runner reports again within a second.
CREATE UNLOGGED TABLE runners (
    owner_id uuid NOT NULL,
    runner_id uuid NOT NULL,
    -- The end of the runner's lease.
    live_until timestamptz NOT NULL,
    -- The runner uses every change of a tool up to this event.
    applied bigint NOT NULL,
    host text NOT NULL,
    working_folder text,
    version text NOT NULL,
    started_at timestamptz NOT NULL,
    -- Slots used and free, by kind.
    slots jsonb NOT NULL,
    draining boolean NOT NULL,
    -- An operator wants it to drain. Reports do not change it.
    drain_requested boolean NOT NULL DEFAULT false,
    -- The private hosts that its tools can reach.
    allowed_private_hosts text[] NOT NULL,
    -- When this row was written.
    reported_at timestamptz NOT NULL,
    PRIMARY KEY (owner_id, runner_id)
);
ALTER TABLE runners ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON runners
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON runners TO rcrt_app;

-- Finished calls that are not counted in `call_stats` yet. Written with the response and deleted
-- when it is counted, within about a second. It has no index and no key: a row is never looked up,
-- and an index would cost every call a write.
CREATE TABLE call_outcomes (
    owner_id uuid NOT NULL,
    -- Of a call that did not run, the result of `counted_name`.
    tool text NOT NULL,
    error_code text,
    finished_at timestamptz NOT NULL,
    -- The result of `call_us`.
    total_us bigint NOT NULL,
    -- The tool alone; NULL if it did not run.
    run_us bigint
) WITH (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_threshold = -1);
ALTER TABLE call_outcomes ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON call_outcomes
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON call_outcomes TO rcrt_app;

-- Finished calls by minute (for hours) and by hour (for a month). A row for each duration that
-- occurred, rounded to a bucket.
CREATE TABLE call_stats (
    owner_id uuid NOT NULL,
    -- The length of the interval in seconds.
    width integer NOT NULL CHECK (width IN (60, 3600)),
    start timestamptz NOT NULL,
    tool text NOT NULL,
    -- Empty for success.
    error_code text NOT NULL,
    bucket smallint NOT NULL,
    -- How many calls took so long in total, and how many tools ran so long.
    totals bigint NOT NULL,
    runs bigint NOT NULL,
    PRIMARY KEY (owner_id, width, start, tool, error_code, bucket)
) WITH (fillfactor = 70);
ALTER TABLE call_stats ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON call_stats
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON call_stats TO rcrt_app;

-- How long a call took, in microseconds: from the write of the request to that of the response. A
-- tool can run before its request is written.
CREATE FUNCTION call_us(queued timestamptz, finished timestamptz, run_us bigint) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN greatest((extract(epoch FROM finished - queued) * 1000000)::bigint, run_us, 0);

-- The name under which a call that did not run is counted. Callers choose names: without a tool of
-- that name, they would add rows without bound.
CREATE FUNCTION counted_name(named text) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET enable_seqscan = off
AS $$
    SELECT CASE WHEN EXISTS (
            SELECT FROM breadcrumbs b WHERE b.owner_id = current_tenant() AND b.tool_name = named)
        THEN named ELSE '(unknown)' END
$$;
REVOKE ALL ON FUNCTION counted_name(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION counted_name(text) TO rcrt_app;

-- The bucket of a duration: four for each factor of two, from 1 microsecond. `calls/stats.rs` has
-- the inverse.
CREATE FUNCTION duration_bucket(us bigint) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN us < 1 THEN 0 ELSE least(floor(4 * ln(us::float8) / ln(2::float8)) + 1, 200) END::smallint;

-- Counts new calls of the call `made_by` at the root of its tree, which is the first call that is
-- still stored. Returns false and counts nothing if the tree would have more than `most`.
CREATE FUNCTION count_descendants(made_by uuid, change integer, most integer) RETURNS boolean
LANGUAGE sql VOLATILE
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
    WITH RECURSIVE above AS (
        SELECT c.request, c.parent, 0 AS distance FROM calls c
        WHERE c.owner_id = current_tenant() AND c.request = made_by
        UNION ALL
        SELECT c.request, c.parent, a.distance + 1 FROM above a
        JOIN calls c ON c.owner_id = current_tenant() AND c.request = a.parent),
    root AS MATERIALIZED (SELECT a.request FROM above a ORDER BY a.distance DESC LIMIT 1),
    counted AS (
        UPDATE calls c SET descendants = c.descendants + change FROM root
        WHERE c.owner_id = current_tenant() AND c.request = root.request AND c.descendants + change <= most
        RETURNING 1)
    SELECT EXISTS (SELECT FROM counted) OR NOT EXISTS (SELECT FROM root)
$$;

-- For housekeeping.
CREATE FUNCTION tenants_with_call_outcomes() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM call_outcomes
$$;

CREATE FUNCTION tenants_with_call_stats() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT t.id FROM tenants t WHERE EXISTS (SELECT FROM call_stats s WHERE s.owner_id = t.id)
$$;

-- For metrics: the unfinished calls of all tenants, by tool.
CREATE FUNCTION unfinished_calls()
RETURNS TABLE (owner_id uuid, tool text, queued bigint, claimed bigint, running bigint, oldest_ms double precision)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT c.owner_id, c.tool, count(*) FILTER (WHERE c.state = 'queued'),
        count(*) FILTER (WHERE c.state = 'claimed'), count(*) FILTER (WHERE c.state = 'running'),
        (extract(epoch FROM clock_timestamp() - min(c.queued_at) FILTER (WHERE c.state = 'queued')) * 1000)::float8
    FROM (SELECT * FROM calls WHERE runner_id IS NULL AND response IS NULL
        UNION ALL SELECT * FROM calls WHERE runner_id IS NOT NULL) c
    GROUP BY c.owner_id, c.tool
$$;

-- For what scales runners: how many calls wait for a runner now, in all tenants. It tells nothing
-- else, so that a role which can only execute it learns only this number. The operator creates that
-- role; the server does not use the function.
CREATE FUNCTION queue_depth() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT count(*) FROM calls
    WHERE runner_id IS NULL AND response IS NULL AND (run_after IS NULL OR run_after <= clock_timestamp())
$$;
REVOKE ALL ON FUNCTION queue_depth() FROM PUBLIC;

REVOKE ALL ON FUNCTION tenants_with_call_outcomes(), tenants_with_call_stats(), unfinished_calls() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_call_outcomes(), tenants_with_call_stats(), unfinished_calls() TO rcrt_app;

-- Claims waiting calls, the oldest first. Claimers skip each other's rows. A call whose request
-- has expired or whose deadline has passed is left for the sweep that answers it.
--
-- The commit does not wait for the disk: a lease may be lost in a crash. Hence the fence is a time
-- in microseconds and not a counter: the claim after a crash must not get the same number.
--
-- Planned for every claim: a plan from when there were few records could read every record of the
-- tenant for each waiting call.
CREATE FUNCTION claim_calls(
    tenant uuid, except_tools text[], awaited_only text[], only_tools text[], most bigint, runner uuid,
    lease_ms double precision
)
RETURNS TABLE (
    fence bigint, next_attempt integer, queued_at timestamptz, ready_at timestamptz, profiles text[],
    allowed_tools json,
    left_ms double precision, id uuid, owner_id uuid, title text, description text, semantic_version text, context json,
    tags text[], schema_name text, llm_hints json, visibility text, sensitivity text, version bigint, checksum text,
    size_bytes bigint, ttl timestamptz, ttl_type text, ttl_config json, created_at timestamptz, updated_at timestamptz,
    created_by uuid, updated_by uuid
)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_custom_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
BEGIN
    PERFORM set_config('rcrt.tenant', tenant::text, true), set_config('rcrt.agent', '*', true),
        set_config('synchronous_commit', 'off', true);
    RETURN QUERY
    WITH next AS MATERIALIZED (
        SELECT c.request FROM calls c
        JOIN breadcrumbs r ON r.owner_id = c.owner_id AND r.id = c.request
            AND (r.ttl IS NULL OR r.ttl > now())
        WHERE c.owner_id = tenant AND c.runner_id IS NULL AND c.response IS NULL AND (c.run_after IS NULL OR c.run_after <= now())
            AND (c.deadline_at IS NULL OR c.deadline_at > clock_timestamp()) AND c.tool <> ALL (except_tools)
            AND (c.awaited OR c.tool <> ALL (awaited_only))
            -- Known when the statement is planned, so that an empty list costs nothing.
            AND (cardinality(only_tools) = 0 OR c.tool = ANY (only_tools))
        ORDER BY c.awaited DESC, c.queued_at, c.request
        LIMIT most
        FOR UPDATE OF c SKIP LOCKED),
    taken AS (
        UPDATE calls c SET state = 'claimed', runner_id = runner,
            fence = GREATEST(c.fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
            lease_until = clock_timestamp() + lease_ms * interval '1 millisecond'
        FROM next WHERE c.owner_id = tenant AND c.request = next.request
        RETURNING c.request, c.fence, c.attempt + 1 AS next_attempt, c.queued_at,
            GREATEST(c.queued_at, c.run_after) AS ready_at, c.profiles, c.agent_id,
            (extract(epoch FROM c.deadline_at - clock_timestamp()) * 1000)::float8 AS left_ms)
    SELECT t.fence, t.next_attempt, t.queued_at, t.ready_at, t.profiles,
        (SELECT a.tools FROM agents a WHERE a.id = t.agent_id AND a.owner_id = tenant), t.left_ms, b.id, b.owner_id, b.title,
        b.description, b.semantic_version, b.context, b.tags, b.schema_name, b.llm_hints, b.visibility, b.sensitivity,
        b.version, b.checksum, b.size_bytes, b.ttl, b.ttl_type, b.ttl_config, b.created_at, b.updated_at, b.created_by,
        b.updated_by
    FROM taken t JOIN breadcrumbs b ON b.owner_id = tenant AND b.id = t.request ORDER BY t.queued_at, t.request;
END
$$;

-- The agent whose request this record answers; NULL when that is not known. An imported response
-- has no call: its metadata, which only runtimes write, name the request.
--
-- Agents choose the texts of their request ids. A selector that names one must not give an agent
-- the response to the request of another.
CREATE FUNCTION requester_of(response uuid) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT coalesce(
        (SELECT c.agent_id FROM calls c
         WHERE c.owner_id = current_tenant() AND c.response = requester_of.response),
        (SELECT q.created_by FROM breadcrumbs r
         JOIN breadcrumbs q ON q.owner_id = r.owner_id AND q.id = (
            SELECT CASE WHEN named ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
                THEN named::uuid END
            FROM (SELECT r.context #>> '{metadata,request}') AS m (named))
         WHERE r.owner_id = current_tenant() AND r.id = requester_of.response
            AND q.schema_name IN ('tool.request.v1', 'tool.create.request.v1')))
$$;

-- Whether the transaction's agent can get this response by the request id: the response to its own
-- request, one that is granted to it, and any if it sees the whole tenant.
CREATE FUNCTION can_get_response(response uuid) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT current_setting('rcrt.agent', true) = '*'
        OR requester_of(response)::text = current_setting('rcrt.agent', true)
        OR grant_allows(response)
$$;

-- The same for an agent that gets the response as an event. Called by a transaction that sees all.
CREATE FUNCTION agent_can_get_response(agent uuid, response uuid) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT coalesce(requester_of(response) = agent, false)
        OR EXISTS (SELECT FROM agents a WHERE a.id = agent AND a.deleted_at IS NULL
            AND a.roles && '{curator,runner}'::text[])
        OR coalesce(grant_subscribers(response) && ARRAY[agent, current_tenant()], false)
$$;

REVOKE ALL ON FUNCTION requester_of(uuid), can_get_response(uuid), agent_can_get_response(uuid, uuid)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION requester_of(uuid), can_get_response(uuid),
    agent_can_get_response(uuid, uuid) TO rcrt_app;
