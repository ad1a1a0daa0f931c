-- A batch of writes in one statement and one round trip: it sets the tenant, does the work and
-- commits. It has the rights of its caller: row-level security applies for the tenant that it sets
-- until the end of the transaction. Its plans are made once per connection and use indexes
-- whatever is in the tables then: a plan that was good for empty tables would read full ones whole.
--
-- The arrays from `places` to `most_attempts`, `answers` and `answered` have one entry per record,
-- those from `requests` to `responses` one per step of a call, which is a start or an end that one
-- of the records answers. Neither a key nor a call may occur twice.
--   places         the event's place among those of the transaction
--   tags, profiles texts of arrays: arrays of different lengths cannot be sent as one
--   runners        of a request: the runner that reserved its call, with its lease in milliseconds
--                  (`leases`). With `most_attempts` the call is running, without it claimed. The
--                  fence is the time of writing in microseconds, as a claim's is.
--   attempts       of a start the tool's number of attempts; of an end 0 if an unstarted call
--                  counts as attempted, NULL if the tool had no part in the response
--   answers        of a request: the record that answers it, which is among the records too
--   answered       of that record: the request. It has the request's key and is written if the
--                  request is.
--
-- Returns a row for each record and each start that was written. A record is missing if its key
-- was taken or its step is missing, a step if its lease is lost. `before` is the number of the
-- tenant's newest event before these, where no older transaction is running: then nothing can come
-- between it and these.
CREATE FUNCTION write_batch(
    tenant uuid,
    places integer[], ids uuid[], titles text[], descriptions text[], semantic_versions text[], contexts text[],
    tags text[], schema_names text[], llm_hints text[], visibilities text[], sensitivities text[], checksums text[],
    sizes bigint[], ttls timestamptz[], ttl_types text[], ttl_configs text[], agents uuid[], label_words text[],
    context_words text[], keys text[], fingerprints text[], tools text[], request_ids text[], workspaces text[],
    profiles text[], deadlines double precision[],
    runners uuid[], leases double precision[], most_attempts integer[],
    requests uuid[], fences bigint[], attempts integer[], responses uuid[],
    answers uuid[], answered uuid[]
) RETURNS TABLE (written uuid, number bigint, at timestamptz, before bigint)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    stepped uuid[];
    newest bigint;
BEGIN
    PERFORM set_config('rcrt.tenant', tenant::text, true);

    -- In the order of the requests, like everything that locks several calls: no deadlocks.
    IF cardinality(requests) > 0 THEN
        WITH done AS (
            UPDATE calls c SET
                state = CASE WHEN s.response IS NULL THEN 'running' ELSE 'finished' END,
                attempt = c.attempt + CASE WHEN s.attempts IS NOT NULL AND c.state = 'claimed' THEN 1 ELSE 0 END,
                max_attempts = CASE WHEN s.attempts > 0 THEN s.attempts ELSE c.max_attempts END,
                response = s.response,
                finished_at = CASE WHEN s.response IS NOT NULL THEN clock_timestamp() END,
                runner_id = CASE WHEN s.response IS NULL THEN c.runner_id END,
                lease_until = CASE WHEN s.response IS NULL THEN c.lease_until END
            FROM (SELECT * FROM unnest(requests, fences, attempts, responses) AS g (request, fence, attempts, response)
                  ORDER BY g.request) s
            -- No condition on runner_id, which a lease implies: calls_leased would be chosen.
            WHERE c.owner_id = tenant AND c.request = s.request AND c.fence = s.fence
                AND c.lease_until > clock_timestamp()
            RETURNING coalesce(c.response, c.request) AS mark)
        SELECT coalesce(array_agg(done.mark), '{}') INTO stepped FROM done;
        RETURN QUERY SELECT mark, NULL::bigint, NULL::timestamptz, NULL::bigint
            FROM unnest(stepped) mark WHERE mark = ANY (requests);
    END IF;

    IF cardinality(ids) > 0 THEN
        IF pg_snapshot_xmin(pg_current_snapshot()) = pg_current_xact_id() THEN
            -- Not max(): its plan for empty tables reads the whole index when they are full.
            newest := greatest(
                (SELECT v.number FROM events v WHERE v.owner_id = tenant ORDER BY v.number DESC LIMIT 1),
                (SELECT s.number FROM shared_events s WHERE s.grantee_owner_id = tenant ORDER BY s.number DESC LIMIT 1),
                0);
        END IF;
        RETURN QUERY
        WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS at),
        given AS MATERIALIZED (
            SELECT g.*, moment.at
            FROM moment, unnest(places, ids, titles, descriptions, semantic_versions, contexts, tags, schema_names,
                llm_hints, visibilities, sensitivities, checksums, sizes, ttls, ttl_types, ttl_configs, agents,
                label_words, context_words, keys, fingerprints, tools, request_ids, workspaces, profiles, deadlines,
                runners, leases, most_attempts, answers, answered)
                AS g (place, id, title, description, semantic_version, context, tags, schema_name,
                llm_hints, visibility, sensitivity, checksum, size_bytes, ttl, ttl_type, ttl_config, agent,
                label_words, context_words, key, fingerprint, tool, request_id, workspace, profiles, deadline,
                runner, lease, most_attempts, answer, answered)
            WHERE NOT coalesce(g.id = ANY (responses), false) OR g.id = ANY (stepped)),
        taken AS (
            INSERT INTO idempotency_keys AS k (owner_id, agent_id, key, fingerprint, breadcrumb_id)
            SELECT tenant, g.agent, g.key, g.fingerprint, g.id FROM given g
            WHERE g.key IS NOT NULL AND g.answered IS NULL
            ORDER BY g.agent, g.key
            ON CONFLICT (owner_id, agent_id, key) DO UPDATE
            SET fingerprint = EXCLUDED.fingerprint, breadcrumb_id = EXCLUDED.breadcrumb_id, created_at = now()
            WHERE k.created_at < now() - interval '24 hours'
            RETURNING k.breadcrumb_id),
        fresh AS MATERIALIZED (
            SELECT * FROM given g
            WHERE g.key IS NULL OR coalesce(g.answered, g.id) IN (SELECT breadcrumb_id FROM taken)),
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
                deadline_at, state, attempt, max_attempts, fence, runner_id, lease_until, response, finished_at)
            SELECT f.id, tenant, f.tool, f.request_id, f.workspace, f.agent, f.at, f.profiles::text[],
                f.at + f.deadline * interval '1 millisecond',
                CASE WHEN f.answer IS NOT NULL THEN 'finished' WHEN f.runner IS NULL THEN 'queued'
                    WHEN f.most_attempts IS NULL THEN 'claimed' ELSE 'running' END,
                CASE WHEN f.answer IS NULL AND f.most_attempts IS NULL THEN 0 ELSE 1 END, coalesce(f.most_attempts, 1),
                CASE WHEN f.runner IS NULL THEN 0 ELSE (extract(epoch FROM f.at) * 1000000)::bigint END,
                CASE WHEN f.answer IS NULL THEN f.runner END,
                CASE WHEN f.answer IS NULL AND f.runner IS NOT NULL THEN f.at + f.lease * interval '1 millisecond' END,
                f.answer, CASE WHEN f.answer IS NOT NULL THEN f.at END
            FROM fresh f WHERE f.tool IS NOT NULL)
        INSERT INTO events (owner_id, number, kind, breadcrumb_id, version, at, size_bytes)
        SELECT tenant, event_number(f.place), 'breadcrumb.created', f.id, 1, f.at, f.size_bytes FROM fresh f
        RETURNING breadcrumb_id, number, at, newest;
    END IF;
END
$$;
