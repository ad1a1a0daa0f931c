-- A batch of writes in one statement and one round trip: `write_batch` sets the tenant, does the
-- work and commits. It has the rights of its caller: row-level security applies for the tenant that
-- it sets until the end of the transaction. Its plans are made once per connection and use indexes
-- whatever is in the tables then: a plan that was good for empty tables would read full ones whole.

-- A new record, with its event, the call that it asks for, and the key of its repetitions.
CREATE TYPE new_record AS (
    -- The index of its event in the transaction.
    event_index integer,
    id uuid,
    title text,
    description text,
    semantic_version text,
    context text,
    tags text[],
    schema_name text,
    llm_hints text,
    visibility text,
    sensitivity text,
    checksum text,
    size_bytes bigint,
    ttl timestamptz,
    ttl_type text,
    ttl_config text,
    agent uuid,
    label_words text,
    context_words text,
    -- The Idempotency-Key.
    key text,
    fingerprint text,
    -- Of a request: the call.
    tool text,
    request_id text,
    workspace text,
    profiles text[],
    deadline_ms double precision,
    -- The runner that reserved the call. With `max_attempts` the call is running, otherwise
    -- claimed. The fence is the time of writing in microseconds, as a claim's is.
    runner uuid,
    lease_ms double precision,
    max_attempts integer,
    -- The record that answers the request, and is among the records too.
    answer uuid,
    -- Of that record: the request. It has the request's key and is written if the request is.
    answered uuid,
    -- Of a request again: its conversation, and the request whose call wrote it.
    session text,
    parent uuid,
    -- Whether that call waits for the response.
    awaited boolean,
    -- How long the tool ran, if the request is written with its response.
    run_us bigint
);

-- A start of a call, or its end, which one of the records answers.
CREATE TYPE call_step AS (
    request uuid,
    fence bigint,
    -- Of a start: the tool's number of attempts. Of an end: 0 if an unstarted call counts as
    -- attempted, NULL if the tool had no part in the response.
    attempts integer,
    response uuid,
    -- Of an end: why the call failed, and how long the tool ran.
    error_code text,
    run_us bigint
);

-- Neither a key nor a call may occur twice. Returns a row for each record and each start that was
-- written. A record is missing if its key was taken or its step is missing, a step if its lease is
-- lost. `before` is the number of the tenant's newest event before these, where no older
-- transaction is running: then nothing can come between it and these.
CREATE FUNCTION write_batch(tenant uuid, records new_record[], steps call_step[])
RETURNS TABLE (written uuid, number bigint, at timestamptz, before bigint)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    stepped uuid[];
    refused uuid[] := '{}';
    newest bigint;
BEGIN
    PERFORM set_config('rcrt.tenant', tenant::text, true);

    -- In the order of the requests, like everything that locks several calls: no deadlocks.
    IF cardinality(steps) > 0 THEN
        WITH done AS (
            UPDATE calls c SET
                state = CASE WHEN s.response IS NULL THEN 'running' ELSE 'finished' END,
                attempt = c.attempt
                    + CASE WHEN s.attempts IS NOT NULL AND c.state = 'claimed' THEN 1 ELSE 0 END,
                max_attempts = CASE WHEN s.attempts > 0 THEN s.attempts ELSE c.max_attempts END,
                started_at = CASE WHEN s.response IS NULL THEN coalesce(c.started_at, clock_timestamp())
                    ELSE c.started_at END,
                response = s.response,
                error_code = s.error_code,
                run_us = s.run_us,
                finished_at = CASE WHEN s.response IS NOT NULL THEN clock_timestamp() END,
                runner_id = CASE WHEN s.response IS NULL THEN c.runner_id END,
                lease_until = CASE WHEN s.response IS NULL THEN c.lease_until END
            FROM (SELECT * FROM unnest(steps) g ORDER BY g.request) s
            -- No condition on runner_id, which a lease implies: calls_leased would be chosen.
            WHERE c.owner_id = tenant AND c.request = s.request AND c.fence = s.fence
                AND c.lease_until > clock_timestamp()
            RETURNING c.request, c.tool, c.queued_at, c.finished_at, c.error_code, s.run_us),
        counted AS (
            INSERT INTO call_outcomes (owner_id, tool, error_code, finished_at, total_us, run_us)
            SELECT tenant, CASE WHEN d.run_us IS NULL THEN counted_name(d.tool) ELSE d.tool END, d.error_code,
                d.finished_at, call_us(d.queued_at, d.finished_at, d.run_us), d.run_us
            FROM done d WHERE d.finished_at IS NOT NULL)
        SELECT coalesce(array_agg(done.request), '{}') INTO stepped FROM done;
        RETURN QUERY SELECT s.request, NULL::bigint, NULL::timestamptz, NULL::bigint
            FROM unnest(steps) s WHERE s.response IS NULL AND s.request = ANY (stepped);
        refused := ARRAY(
            SELECT s.response FROM unnest(steps) s
            WHERE s.response IS NOT NULL AND s.request <> ALL (stepped));
    END IF;

    IF cardinality(records) > 0 THEN
        IF pg_snapshot_xmin(pg_current_snapshot()) = pg_current_xact_id() THEN
            -- Not max(): its plan for empty tables reads the whole index when they are full.
            newest := greatest(
                (SELECT v.number FROM events v WHERE v.owner_id = tenant
                 ORDER BY v.number DESC LIMIT 1),
                (SELECT s.number FROM shared_events s WHERE s.grantee_owner_id = tenant
                 ORDER BY s.number DESC LIMIT 1),
                0);
        END IF;
        RETURN QUERY
        WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS at),
        given AS MATERIALIZED (
            SELECT g.*, moment.at FROM moment, unnest(records) g WHERE g.id <> ALL (refused)),
        taken AS (
            INSERT INTO idempotency_keys AS k (owner_id, agent_id, key, fingerprint, breadcrumb_id)
            SELECT tenant, g.agent, g.key, g.fingerprint, g.id FROM given g
            WHERE g.key IS NOT NULL AND g.answered IS NULL
            ORDER BY g.agent, g.key
            ON CONFLICT (owner_id, agent_id, key) DO UPDATE
            SET fingerprint = EXCLUDED.fingerprint, breadcrumb_id = EXCLUDED.breadcrumb_id,
                created_at = now()
            WHERE k.created_at < now() - interval '24 hours'
            RETURNING k.breadcrumb_id),
        fresh AS MATERIALIZED (
            SELECT * FROM given g
            WHERE g.key IS NULL OR coalesce(g.answered, g.id) IN (SELECT breadcrumb_id FROM taken)),
        record AS (
            INSERT INTO breadcrumbs (owner_id, id, title, description, semantic_version, context,
                tags, schema_name, llm_hints, visibility, sensitivity, version, checksum,
                size_bytes, ttl, ttl_type, ttl_config, created_at, updated_at, created_by,
                updated_by, words)
            SELECT tenant, f.id, f.title, f.description, f.semantic_version, f.context::json,
                f.tags, f.schema_name, f.llm_hints::json, f.visibility, f.sensitivity, 1,
                f.checksum, f.size_bytes, f.ttl, f.ttl_type, f.ttl_config::json, f.at, f.at,
                f.agent, f.agent,
                setweight(to_tsvector('english', f.title), 'A')
                    || setweight(to_tsvector('english', f.label_words), 'B')
                    || setweight(to_tsvector('english', f.context_words), 'C')
            FROM fresh f),
        tag AS (
            INSERT INTO breadcrumb_tags (owner_id, tag, breadcrumb_id)
            SELECT DISTINCT tenant, t, f.id FROM fresh f, unnest(f.tags) t),
        audited AS (
            INSERT INTO audit (owner_id, agent_id, action, subject, subject_name)
            SELECT tenant, f.agent, 'tool.created', f.id, coalesce(f.context::json ->> 'name', f.title)
            FROM fresh f WHERE f.schema_name IN ('tool.code.v1', 'tool.v1')),
        call AS (
            INSERT INTO calls (owner_id, request, creates_tool, tool, request_id, workspace, agent_id, queued_at,
                profiles, deadline_at, state, attempt, max_attempts, fence, runner_id, lease_until,
                response, finished_at, run_us, session, parent, awaited, started_at)
            SELECT tenant, f.id, f.schema_name = 'tool.create.request.v1', f.tool, f.request_id, f.workspace, f.agent, f.at, f.profiles,
                f.at + f.deadline_ms * interval '1 millisecond',
                CASE WHEN f.answer IS NOT NULL THEN 'finished' WHEN f.runner IS NULL THEN 'queued'
                    WHEN f.max_attempts IS NULL THEN 'claimed' ELSE 'running' END,
                CASE WHEN f.answer IS NULL AND f.max_attempts IS NULL THEN 0 ELSE 1 END,
                coalesce(f.max_attempts, 1),
                CASE WHEN f.runner IS NULL THEN 0
                    ELSE (extract(epoch FROM f.at) * 1000000)::bigint END,
                CASE WHEN f.answer IS NULL THEN f.runner END,
                CASE WHEN f.answer IS NULL AND f.runner IS NOT NULL
                    THEN f.at + f.lease_ms * interval '1 millisecond' END,
                f.answer, CASE WHEN f.answer IS NOT NULL THEN f.at END, f.run_us, f.session, f.parent, f.awaited,
                CASE WHEN f.answer IS NULL AND f.max_attempts IS NOT NULL THEN f.at END
            FROM fresh f WHERE f.tool IS NOT NULL),
        counted AS (
            INSERT INTO call_outcomes (owner_id, tool, finished_at, total_us, run_us)
            SELECT tenant, f.tool, f.at, call_us(f.at, f.at, f.run_us), f.run_us FROM fresh f
            WHERE f.answer IS NOT NULL)
        INSERT INTO events (owner_id, number, kind, breadcrumb_id, version, at, size_bytes)
        SELECT tenant, event_number(f.event_index), 'breadcrumb.created', f.id, 1, f.at, f.size_bytes
        FROM fresh f
        RETURNING breadcrumb_id, number, at, newest;
    END IF;
END
$$;
