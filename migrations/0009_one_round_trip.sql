-- Each step of a call in one statement: it names the tenant, does the work and commits, in one round trip.
--
-- These are functions with the rights of who calls them: row-level security holds in them as everywhere, for the
-- tenant that they set until the end of the transaction. Their plans are made once for each connection (but for a
-- claim's), and go by index whatever is in the tables then: a plan that was good for empty tables would read full ones
-- whole.

-- What waits and what is under way, by columns that a start and a heartbeat do not touch, so that these touch no
-- index. Of a call's states only `queued` has neither a runner nor a response (see the checks of the table).
DROP INDEX calls_waiting, calls_under_way, calls_with_deadline;
CREATE INDEX calls_waiting ON calls (owner_id, queued_at, request) WHERE runner_id IS NULL AND response IS NULL;
CREATE INDEX calls_under_way ON calls (owner_id) WHERE runner_id IS NOT NULL;
CREATE INDEX calls_with_deadline ON calls (owner_id, deadline_at)
    WHERE runner_id IS NULL AND response IS NULL AND deadline_at IS NOT NULL;
-- Most steps of a call write no response: they need no entry for having none.
ALTER TABLE calls DROP CONSTRAINT calls_response_key;
CREATE UNIQUE INDEX calls_response ON calls (response) WHERE response IS NOT NULL;
-- A call's row is written four times within moments. Room for that in its page, and a look at what is dead before a
-- fifth of a large table is.
ALTER TABLE calls SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000);

CREATE OR REPLACE FUNCTION tenants_with_ended_leases() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM calls WHERE runner_id IS NOT NULL AND lease_until <= now()
$$;

CREATE OR REPLACE FUNCTION tenants_with_passed_deadlines() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM calls WHERE runner_id IS NULL AND response IS NULL AND deadline_at <= now()
$$;

-- Many writes in one transaction: new records, each with its tags, its event, the call that it asks for and the key of
-- its repetitions; and steps of calls, each a start or an end that one of the records answers.
--
-- The first group of arrays has an entry for each record (`places`: among the transaction's events; `tags`: as texts of
-- arrays), the second one for each step. Gives a row for each record and each start that was written: a record is
-- missing whose key was taken before or whose step is missing, a step whose lease is lost. Neither a key nor a call may
-- come twice.
CREATE FUNCTION write_batch(
    tenant uuid,
    places integer[], ids uuid[], titles text[], descriptions text[], semantic_versions text[], contexts text[],
    tags text[], schema_names text[], llm_hints text[], visibilities text[], sensitivities text[], checksums text[],
    sizes bigint[], ttls timestamptz[], ttl_types text[], ttl_configs text[], agents uuid[], label_words text[],
    context_words text[], keys text[], fingerprints text[], tools text[], request_ids text[], workspaces text[],
    profiles text[], deadlines double precision[],
    requests uuid[], fences bigint[], attempts integer[], responses uuid[]
) RETURNS TABLE (written uuid, number bigint, at timestamptz)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    stepped uuid[];
BEGIN
    PERFORM set_config('rcrt.tenant', tenant::text, true);

    -- In the order of the requests, like everything that holds several calls, so that no two wait for each other.
    IF cardinality(requests) > 0 THEN
        WITH done AS (
            UPDATE calls c SET
                state = CASE WHEN s.response IS NULL THEN 'running' ELSE 'finished' END,
                attempt = c.attempt + CASE WHEN s.response IS NULL AND c.state = 'claimed' THEN 1 ELSE 0 END,
                max_attempts = coalesce(s.attempts, c.max_attempts),
                response = s.response,
                finished_at = CASE WHEN s.response IS NOT NULL THEN clock_timestamp() END,
                runner_id = CASE WHEN s.response IS NULL THEN c.runner_id END,
                lease_until = CASE WHEN s.response IS NULL THEN c.lease_until END
            FROM (SELECT * FROM unnest(requests, fences, attempts, responses) AS g (request, fence, attempts, response)
                  ORDER BY g.request) s
            -- Who has a lease has a runner. It is not asked for: by that index every call under way would be read.
            WHERE c.request = s.request AND c.fence = s.fence AND c.lease_until > clock_timestamp()
            RETURNING coalesce(c.response, c.request) AS mark)
        SELECT coalesce(array_agg(done.mark), '{}') INTO stepped FROM done;
        RETURN QUERY SELECT mark, NULL::bigint, NULL::timestamptz
            FROM unnest(stepped) mark WHERE mark = ANY (requests);
    END IF;

    IF cardinality(ids) > 0 THEN
        RETURN QUERY
        WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS at),
        given AS MATERIALIZED (
            SELECT g.*, moment.at
            FROM moment, unnest(places, ids, titles, descriptions, semantic_versions, contexts, tags, schema_names,
                llm_hints, visibilities, sensitivities, checksums, sizes, ttls, ttl_types, ttl_configs, agents,
                label_words, context_words, keys, fingerprints, tools, request_ids, workspaces, profiles, deadlines)
                AS g (place, id, title, description, semantic_version, context, tags, schema_name,
                llm_hints, visibility, sensitivity, checksum, size_bytes, ttl, ttl_type, ttl_config, agent,
                label_words, context_words, key, fingerprint, tool, request_id, workspace, profiles, deadline)
            WHERE NOT coalesce(g.id = ANY (responses), false) OR g.id = ANY (stepped)),
        taken AS (
            INSERT INTO idempotency_keys AS k (owner_id, agent_id, key, fingerprint, breadcrumb_id)
            SELECT tenant, g.agent, g.key, g.fingerprint, g.id FROM given g WHERE g.key IS NOT NULL
            ORDER BY g.agent, g.key
            ON CONFLICT (owner_id, agent_id, key) DO UPDATE
            SET fingerprint = EXCLUDED.fingerprint, breadcrumb_id = EXCLUDED.breadcrumb_id, created_at = now()
            WHERE k.created_at < now() - interval '24 hours'
            RETURNING k.breadcrumb_id),
        fresh AS MATERIALIZED (
            SELECT * FROM given g WHERE g.key IS NULL OR g.id IN (SELECT breadcrumb_id FROM taken)),
        record AS (
            INSERT INTO breadcrumbs (id, owner_id, title, description, semantic_version, context, tags, schema_name,
                llm_hints, visibility, sensitivity, version, checksum, size_bytes, ttl, ttl_type, ttl_config,
                created_at, updated_at, created_by, updated_by, words)
            SELECT f.id, tenant, f.title, f.description, f.semantic_version, f.context::json, f.tags::text[],
                f.schema_name, f.llm_hints::json, f.visibility, f.sensitivity, 1, f.checksum, f.size_bytes, f.ttl,
                f.ttl_type, f.ttl_config::json, f.at, f.at, f.agent, f.agent,
                setweight(to_tsvector('english', f.title), 'A') || setweight(to_tsvector('english', f.label_words), 'B')
                    || setweight(to_tsvector('english', f.context_words), 'C')
            FROM fresh f),
        tag AS (
            INSERT INTO breadcrumb_tags (owner_id, tag, breadcrumb_id)
            SELECT DISTINCT tenant, t, f.id FROM fresh f, unnest(f.tags::text[]) t),
        call AS (
            INSERT INTO calls (request, owner_id, tool, request_id, workspace, agent_id, queued_at, profiles,
                deadline_at)
            SELECT f.id, tenant, f.tool, f.request_id, f.workspace, f.agent, f.at, f.profiles::text[],
                f.at + f.deadline * interval '1 millisecond'
            FROM fresh f WHERE f.tool IS NOT NULL)
        INSERT INTO events (owner_id, number, kind, breadcrumb_id, version, at, size_bytes)
        SELECT tenant, event_number(f.place), 'breadcrumb.created', f.id, 1, f.at, f.size_bytes FROM fresh f
        RETURNING breadcrumb_id, number, at;
    END IF;
END
$$;

-- Takes waiting calls, the oldest first, without waiting for the disk: a lease may be lost in a crash. Claimers pass
-- over each other's rows. A call whose request has ended, or whose deadline has passed, is left to be answered.
--
-- The fence is a time in microseconds and not a mere count: the claim after one that was lost in a crash must not get
-- the same number.
--
-- Planned for every claim: a plan that was made while there were few records could read every record of the tenant for
-- each call that waits.
CREATE FUNCTION claim_calls(tenant uuid, except_tools text[], most bigint, runner uuid, lease_ms double precision)
RETURNS TABLE (
    fence bigint, next_attempt integer, queued_at timestamptz, ready_at timestamptz, profiles text[],
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
    PERFORM set_config('rcrt.tenant', tenant::text, true), set_config('synchronous_commit', 'off', true);
    RETURN QUERY
    WITH next AS MATERIALIZED (
        SELECT c.request FROM calls c
        JOIN breadcrumbs r ON r.id = c.request AND (r.ttl IS NULL OR r.ttl > now())
        WHERE c.runner_id IS NULL AND c.response IS NULL AND (c.run_after IS NULL OR c.run_after <= now())
            AND (c.deadline_at IS NULL OR c.deadline_at > clock_timestamp()) AND c.tool <> ALL (except_tools)
        ORDER BY c.queued_at, c.request
        LIMIT most
        FOR UPDATE OF c SKIP LOCKED),
    taken AS (
        UPDATE calls c SET state = 'claimed', runner_id = runner,
            fence = GREATEST(c.fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint),
            lease_until = clock_timestamp() + lease_ms * interval '1 millisecond'
        FROM next WHERE c.request = next.request
        RETURNING c.request, c.fence, c.attempt + 1 AS next_attempt, c.queued_at,
            GREATEST(c.queued_at, c.run_after) AS ready_at, c.profiles,
            (extract(epoch FROM c.deadline_at - clock_timestamp()) * 1000)::float8 AS left_ms)
    SELECT t.fence, t.next_attempt, t.queued_at, t.ready_at, t.profiles, t.left_ms, b.id, b.owner_id, b.title,
        b.description, b.semantic_version, b.context, b.tags, b.schema_name, b.llm_hints, b.visibility, b.sensitivity,
        b.version, b.checksum, b.size_bytes, b.ttl, b.ttl_type, b.ttl_config, b.created_at, b.updated_at, b.created_by,
        b.updated_by
    FROM taken t JOIN breadcrumbs b ON b.id = t.request ORDER BY t.queued_at, t.request;
END
$$;

-- The next events after a number that are complete (below the oldest transaction still running), with their contents
-- but for those that the caller knows; and a row without a number when there are more, which may wait for an older
-- transaction to end. That is asked afterwards and without the horizon: what moved below it in between must count too.
CREATE FUNCTION events_after(tenant uuid, after bigint, most bigint, most_bytes bigint, known bigint[])
RETURNS TABLE (
    number bigint, kind text, breadcrumb_id uuid, version bigint, at timestamptz, size_bytes bigint, tags text[],
    schema_name text, context json
)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    newest bigint := after;
BEGIN
    PERFORM set_config('rcrt.tenant', tenant::text, true);
    FOR number, kind, breadcrumb_id, version, at, size_bytes, tags, schema_name, context IN
        WITH next AS MATERIALIZED (
            SELECT e.*, sum(e.size_bytes) OVER (ORDER BY e.number) - e.size_bytes AS bytes_before,
                CASE WHEN e.number <> ALL (known) THEN e.breadcrumb_id END AS unknown
            FROM (SELECT * FROM events v
                  WHERE v.owner_id = tenant AND v.number > after AND v.number < event_horizon()
                  ORDER BY v.number LIMIT most) e)
        SELECT n.number, n.kind, n.breadcrumb_id, n.version, n.at, n.size_bytes, coalesce(b.tags, v.tags),
            coalesce(b.schema_name, v.schema_name), coalesce(b.context, v.context)
        FROM next n
        LEFT JOIN breadcrumbs b ON b.id = n.unknown AND b.version = n.version
        LEFT JOIN breadcrumb_versions v ON v.breadcrumb_id = n.unknown AND v.version = n.version
        WHERE n.bytes_before < most_bytes
        ORDER BY n.number
    LOOP
        newest := number;
        RETURN NEXT;
    END LOOP;
    IF EXISTS (SELECT FROM events v WHERE v.owner_id = tenant AND v.number > newest) THEN
        RETURN QUERY SELECT NULL::bigint, '', tenant, 0::bigint, now(), 0::bigint, NULL::text[], NULL, NULL::json;
    END IF;
END
$$;
