-- Who sees which of a tenant's records, and what another tenant may do with some of them: row by row, in the database.
--
-- Beside `rcrt.tenant` a transaction names whose eyes it has:
--   rcrt.agent    `*` sees all of the tenant (curators, runners, the store's own work); else an agent's id. Without it
--                 nothing private is seen.
--   rcrt.guest    the agent's own tenant, when the transaction works in another one: then only what was granted is there.
--   rcrt.actions  which granted actions open a record for this transaction, such as {read_context,read_full}.

-- A record opened to an agent, or to all agents of a tenant (then without `grantee_agent_id`). It stays when the record
-- is deleted, for as long as the event of that is told; ids do not come again.
CREATE TABLE acl_grants (
    id uuid PRIMARY KEY,
    -- The record's tenant.
    owner_id uuid NOT NULL,
    breadcrumb_id uuid NOT NULL,
    grantee_owner_id uuid NOT NULL,
    grantee_agent_id uuid,
    actions text[] NOT NULL CHECK (cardinality(actions) > 0
        AND actions <@ ARRAY['read_context', 'read_full', 'update', 'delete', 'subscribe']),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by uuid NOT NULL,
    UNIQUE NULLS NOT DISTINCT (breadcrumb_id, grantee_owner_id, grantee_agent_id)
);
CREATE INDEX acl_grants_by_owner ON acl_grants (owner_id, created_at, id);
CREATE INDEX acl_grants_abroad ON acl_grants (grantee_owner_id, breadcrumb_id) WHERE grantee_owner_id <> owner_id;

ALTER TABLE acl_grants ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON acl_grants USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON acl_grants TO rcrt_app;

-- Changes of records that another tenant may follow, written with the change: numbers are of one order for all tenants.
CREATE TABLE shared_events (
    grantee_owner_id uuid NOT NULL,
    number bigint NOT NULL,
    -- The record's tenant.
    owner_id uuid NOT NULL,
    kind text NOT NULL,
    breadcrumb_id uuid NOT NULL,
    version bigint NOT NULL,
    at timestamptz NOT NULL,
    size_bytes bigint NOT NULL,
    PRIMARY KEY (grantee_owner_id, number)
);
CREATE INDEX shared_events_age ON shared_events USING brin (at);

ALTER TABLE shared_events ENABLE ROW LEVEL SECURITY;
CREATE POLICY told ON shared_events FOR SELECT
    USING (grantee_owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
CREATE POLICY tenant ON shared_events USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON shared_events TO rcrt_app;

-- What an older version was, and whose: its event is told by that. NULL in versions from before.
ALTER TABLE breadcrumb_versions
    ADD COLUMN visibility text,
    ADD COLUMN sensitivity text,
    ADD COLUMN created_by uuid;

-- Whether a grant opens this record of the transaction's tenant to whom the transaction has the eyes of.
CREATE FUNCTION acl_admits(record uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM acl_grants g
        WHERE g.breadcrumb_id = record AND g.owner_id = current_tenant()
            AND g.grantee_owner_id = coalesce(NULLIF(current_setting('rcrt.guest', true), '')::uuid, g.owner_id)
            AND (g.grantee_agent_id IS NULL OR g.grantee_agent_id::text = current_setting('rcrt.agent', true))
            AND g.actions && coalesce(NULLIF(current_setting('rcrt.actions', true), ''), '{}')::text[])
$$;

-- Grants are looked at by a function, and only for what is not open anyway, so that they stand in no plan of the queue.
ALTER POLICY tenant ON breadcrumbs
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND CASE
            WHEN current_setting('rcrt.agent', true) = '*' THEN true
            WHEN coalesce(current_setting('rcrt.guest', true), '') = '' THEN visibility <> 'private'
                OR created_by::text = current_setting('rcrt.agent', true) OR acl_admits(id)
            ELSE (visibility = 'public' AND sensitivity <> 'secret'
                AND 'read_context' = ANY (coalesce(NULLIF(current_setting('rcrt.actions', true), ''), '{}')::text[]))
                OR acl_admits(id)
        END)
    WITH CHECK (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);

-- With the rights of who asks: whether the record's present version is seen.
CREATE FUNCTION sees_record(record uuid) RETURNS boolean
LANGUAGE sql STABLE
AS $$ SELECT EXISTS (SELECT FROM breadcrumbs b WHERE b.id = record) $$;

ALTER POLICY tenant ON breadcrumb_versions
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND (current_setting('rcrt.agent', true) = '*' OR sees_record(breadcrumb_id)))
    WITH CHECK (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);

-- Whether the transaction's tenant has this record, seen or not.
CREATE FUNCTION record_is_there(record uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT EXISTS (SELECT FROM breadcrumbs b WHERE b.id = record AND b.owner_id = current_tenant()) $$;

-- The tenant of an agent that exists, of whatever tenant: grants are given to agents of others.
CREATE FUNCTION tenant_of_agent(agent uuid) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT a.owner_id FROM agents a WHERE a.id = agent AND a.deleted_at IS NULL AND current_tenant() IS NOT NULL $$;

CREATE FUNCTION tenant_is_there(wanted uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT EXISTS (SELECT FROM tenants t WHERE t.id = wanted AND current_tenant() IS NOT NULL) $$;

-- The other tenant whose record this is, when an agent of the transaction's tenant may do one of the wanted actions
-- with it; what is public may be read in short by all.
CREATE FUNCTION shared_home(record uuid, agent uuid, wanted text[]) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT b.owner_id FROM breadcrumbs b
    WHERE b.id = record AND b.owner_id <> current_tenant() AND (b.ttl IS NULL OR b.ttl > clock_timestamp())
        AND ((b.visibility = 'public' AND b.sensitivity <> 'secret' AND 'read_context' = ANY (wanted))
            OR EXISTS (
                SELECT FROM acl_grants g
                WHERE g.breadcrumb_id = record AND g.owner_id = b.owner_id AND g.grantee_owner_id = current_tenant()
                    AND (g.grantee_agent_id IS NULL OR g.grantee_agent_id = agent) AND g.actions && wanted))
$$;

-- Which tenants others have opened a record to.
CREATE FUNCTION tenants_with_shares() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT DISTINCT g.grantee_owner_id FROM acl_grants g WHERE g.grantee_owner_id <> g.owner_id $$;

-- What the runtime acts upon by itself (tools, requests, memory, schedules, schemas). Another tenant's is never mixed
-- among the tenant's own: who may read it reads it by id.
CREATE FUNCTION is_acted_upon(schema_name text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(schema_name ~ '^(tool|memory|schedule|schema)\.', false);

-- The records of other tenants that this agent of the transaction's tenant may read, for lists and searches.
CREATE FUNCTION shared_breadcrumbs(agent uuid) RETURNS SETOF breadcrumbs
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT b.* FROM breadcrumbs b
    WHERE b.owner_id <> current_tenant() AND NOT is_acted_upon(b.schema_name) AND b.id IN (
        SELECT g.breadcrumb_id FROM acl_grants g
        WHERE g.grantee_owner_id = current_tenant() AND g.grantee_owner_id <> g.owner_id
            AND (g.grantee_agent_id IS NULL OR g.grantee_agent_id = agent)
            AND g.actions && '{read_context,read_full}'::text[])
$$;

-- Which agents, and agents of which tenants, may follow a record of the transaction's tenant by a grant.
CREATE FUNCTION acl_readers(record uuid) RETURNS uuid[]
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(coalesce(g.grantee_agent_id, g.grantee_owner_id)) FROM acl_grants g
    WHERE g.breadcrumb_id = record AND 'subscribe' = ANY (g.actions)
$$;

-- Whether an agent of the tenant may hear of this version of one of the tenant's records; to be asked by a transaction
-- that sees all. Curators and runners hear of all.
CREATE FUNCTION hears(agent uuid, record uuid, record_version bigint) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT CASE
        -- Who may not follow events hears of none, however it came to ask.
        WHEN EXISTS (SELECT FROM agents a WHERE a.id = agent
            AND (a.deleted_at IS NOT NULL OR NOT a.roles && '{curator,runner,subscriber}'::text[])) THEN false
        WHEN coalesce(b.visibility, last.visibility, v.visibility, 'team') <> 'private' THEN true
        WHEN coalesce(b.created_by, v.created_by) = agent THEN true
        WHEN EXISTS (SELECT FROM agents a WHERE a.id = agent AND a.deleted_at IS NULL
            AND a.roles && '{curator,runner}'::text[]) THEN true
        ELSE coalesce(acl_readers(record) && ARRAY[agent, current_tenant()], false)
    END
    FROM (SELECT 1) one
    LEFT JOIN breadcrumbs b ON b.id = record
    LEFT JOIN breadcrumb_versions v ON v.breadcrumb_id = record AND v.version = record_version
    LEFT JOIN LATERAL (
        SELECT l.visibility FROM breadcrumb_versions l
        WHERE b.id IS NULL AND l.breadcrumb_id = record ORDER BY l.version DESC LIMIT 1) last ON true
$$;

-- What the events of other tenants' records tell, and who of the transaction's tenant may hear it. Nothing of those that
-- nobody may hear any more.
CREATE FUNCTION shared_contents(records uuid[], record_versions bigint[])
RETURNS TABLE (breadcrumb_id uuid, version bigint, tags text[], schema_name text, context json, is_secret boolean,
    readers uuid[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT told.*, may.readers FROM (
        SELECT k.record, k.version,
            CASE WHEN b.version = k.version THEN b.tags ELSE v.tags END,
            CASE WHEN b.version = k.version THEN b.schema_name ELSE v.schema_name END,
            CASE WHEN 'secret' IN (coalesce(b.sensitivity, ''), coalesce(v.sensitivity, ''), last.sensitivity) THEN NULL
                WHEN b.version = k.version THEN b.context ELSE v.context END,
            coalesce('secret' IN (coalesce(b.sensitivity, ''), coalesce(v.sensitivity, ''), last.sensitivity), false)
        FROM unnest(records, record_versions) AS k (record, version)
        LEFT JOIN breadcrumbs b ON b.id = k.record
        LEFT JOIN breadcrumb_versions v ON v.breadcrumb_id = k.record AND v.version = k.version
        LEFT JOIN LATERAL (
            SELECT l.sensitivity FROM breadcrumb_versions l
            WHERE b.id IS NULL AND l.breadcrumb_id = k.record ORDER BY l.version DESC LIMIT 1) last ON true
    ) AS told (record, version, tags, schema_name, context, is_secret)
    JOIN LATERAL (
        SELECT array_agg(coalesce(g.grantee_agent_id, g.grantee_owner_id)) AS readers FROM acl_grants g
        WHERE g.breadcrumb_id = told.record AND g.grantee_owner_id = current_tenant()
            AND g.grantee_owner_id <> g.owner_id AND 'subscribe' = ANY (g.actions)
    ) may ON may.readers IS NOT NULL
$$;

REVOKE ALL ON FUNCTION acl_admits(uuid), sees_record(uuid), record_is_there(uuid), tenant_of_agent(uuid),
    tenant_is_there(uuid), shared_home(uuid, uuid, text[]), tenants_with_shares(), shared_breadcrumbs(uuid),
    acl_readers(uuid), hears(uuid, uuid, bigint), shared_contents(uuid[], bigint[]) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION acl_admits(uuid), sees_record(uuid), record_is_there(uuid), tenant_of_agent(uuid),
    tenant_is_there(uuid), shared_home(uuid, uuid, text[]), tenants_with_shares(), shared_breadcrumbs(uuid),
    acl_readers(uuid), hears(uuid, uuid, bigint), shared_contents(uuid[], bigint[]) TO rcrt_app;

-- As in 0009, with the eyes of a runner: it runs what is private, too.
CREATE OR REPLACE FUNCTION claim_calls(tenant uuid, except_tools text[], most bigint, runner uuid, lease_ms double precision)
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
    PERFORM set_config('rcrt.tenant', tenant::text, true), set_config('rcrt.agent', '*', true),
        set_config('synchronous_commit', 'off', true);
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

-- `events_after` of 0009 with what it takes to tell who may hear of an event: of the tenant's own records whose they are
-- and who was let in, of other tenants' records (`owner_id` is not the tenant) the bare event. What the caller knows comes
-- without content.
CREATE FUNCTION followed_events(tenant uuid, after bigint, most bigint, most_bytes bigint, known bigint[])
RETURNS TABLE (
    number bigint, kind text, breadcrumb_id uuid, version bigint, at timestamptz, size_bytes bigint, owner_id uuid,
    tags text[], schema_name text, context json, is_secret boolean, is_private boolean, created_by uuid, readers uuid[]
)
LANGUAGE plpgsql VOLATILE
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
    newest bigint := after;
BEGIN
    PERFORM set_config('rcrt.tenant', tenant::text, true), set_config('rcrt.agent', '*', true);
    FOR number, kind, breadcrumb_id, version, at, size_bytes, owner_id, tags, schema_name, context, is_secret,
        is_private, created_by, readers IN
        WITH next AS MATERIALIZED (
            SELECT e.*, sum(e.size_bytes) OVER (ORDER BY e.number) - e.size_bytes AS bytes_before,
                CASE WHEN e.owner_id = tenant AND e.number <> ALL (known) THEN e.breadcrumb_id END AS unknown
            FROM ((SELECT v.number, v.kind, v.breadcrumb_id, v.version, v.at, v.size_bytes, v.owner_id FROM events v
                   WHERE v.owner_id = tenant AND v.number > after AND v.number < event_horizon()
                   ORDER BY v.number LIMIT most)
                  UNION ALL
                  (SELECT s.number, s.kind, s.breadcrumb_id, s.version, s.at, s.size_bytes, s.owner_id
                   FROM shared_events s
                   WHERE s.grantee_owner_id = tenant AND s.number > after AND s.number < event_horizon()
                   ORDER BY s.number LIMIT most)
                  ORDER BY number LIMIT most) e)
        SELECT n.number, n.kind, n.breadcrumb_id, n.version, n.at, n.size_bytes, n.owner_id,
            CASE WHEN b.version = n.version THEN b.tags ELSE v.tags END,
            CASE WHEN b.version = n.version THEN b.schema_name ELSE v.schema_name END,
            CASE WHEN 'secret' IN (coalesce(b.sensitivity, ''), coalesce(v.sensitivity, ''), last.sensitivity) THEN NULL
                WHEN b.version = n.version THEN b.context ELSE v.context END,
            coalesce('secret' IN (coalesce(b.sensitivity, ''), coalesce(v.sensitivity, ''), last.sensitivity), false),
            coalesce(b.visibility, last.visibility, v.visibility, '') = 'private',
            coalesce(b.created_by, v.created_by),
            CASE WHEN coalesce(b.visibility, last.visibility, v.visibility, '') = 'private' THEN acl_readers(n.unknown) END
        FROM next n
        LEFT JOIN breadcrumbs b ON b.id = n.unknown
        LEFT JOIN breadcrumb_versions v ON v.breadcrumb_id = n.unknown AND v.version = n.version
        -- Of a deleted record, what it was in the end: its older events tell no more than when it was there.
        LEFT JOIN LATERAL (
            SELECT l.visibility, l.sensitivity FROM breadcrumb_versions l
            WHERE b.id IS NULL AND l.breadcrumb_id = n.unknown ORDER BY l.version DESC LIMIT 1) last ON true
        WHERE n.bytes_before < most_bytes
        ORDER BY n.number
    LOOP
        newest := number;
        RETURN NEXT;
    END LOOP;
    IF EXISTS (SELECT FROM events v WHERE v.owner_id = tenant AND v.number > newest)
        OR EXISTS (SELECT FROM shared_events s WHERE s.grantee_owner_id = tenant AND s.number > newest) THEN
        RETURN QUERY SELECT NULL::bigint, '', tenant, 0::bigint, now(), 0::bigint, tenant, NULL::text[], NULL,
            NULL::json, false, false, NULL::uuid, NULL::uuid[];
    END IF;
END
$$;
