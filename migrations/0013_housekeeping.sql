-- Housekeeping: which tenants have something to clean up, and the deletion of tenants.

-- The outcome of purging expired records, a row for each tenant that ever had some.
CREATE TABLE hygiene (
    owner_id uuid PRIMARY KEY,
    runs bigint NOT NULL,
    purged bigint NOT NULL,
    last_run_at timestamptz NOT NULL,
    last_run_ms bigint NOT NULL,
    last_run_purged bigint NOT NULL,
    last_run_errors integer NOT NULL
);
ALTER TABLE hygiene ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON hygiene
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE ON hygiene TO rcrt_app;

-- The work itself is done in each tenant's own transaction, under row-level security like
-- everything else. Only the ids of the tenants are read across them.
CREATE FUNCTION tenants_with_expired_leases() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM calls WHERE runner_id IS NOT NULL AND lease_until <= now()
$$;

CREATE FUNCTION tenants_with_passed_deadlines() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM calls WHERE runner_id IS NULL AND response IS NULL AND deadline_at <= now()
$$;

CREATE FUNCTION tenants_with_orphans() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT c.owner_id FROM calls c JOIN calls p ON p.owner_id = c.owner_id AND p.request = c.parent
    WHERE c.awaited AND c.response IS NULL AND NOT c.cancel_requested AND p.response IS NOT NULL
$$;

CREATE FUNCTION tenants_with_expired_records() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM breadcrumbs WHERE ttl <= now()
$$;

CREATE FUNCTION tenants_with_old_events(before timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM events WHERE at < before AND number >= (SELECT first_open_event())
    UNION SELECT owner_id FROM events_rest WHERE at < before
    UNION SELECT owner_id FROM shared_events WHERE at < before
$$;

CREATE FUNCTION tenants_with_old_idempotency_keys(before timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM idempotency_keys WHERE created_at < before
$$;

-- Tenants with responses, logs, or requests of finished calls, from before this time.
CREATE FUNCTION tenants_with_old_calls(before timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT t.id FROM tenants t WHERE t.deleted_at IS NULL AND EXISTS (
        SELECT FROM breadcrumbs b WHERE b.owner_id = t.id
            AND b.schema_name IN ('tool.request.v1', 'tool.response.v1', 'tool.create.request.v1',
                'tool.create.response.v1', 'tool.log.v1') AND b.updated_at < before)
$$;

-- The records that are being archived: the name of their file, and whether it is complete. Then
-- they are deleted.
CREATE TABLE call_archives (
    owner_id uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    file text NOT NULL,
    records uuid[] NOT NULL,
    is_written boolean NOT NULL DEFAULT false
);
ALTER TABLE call_archives ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON call_archives
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON call_archives TO rcrt_app;

-- Tenants with events from before this time that are in no archive. Only the oldest of each tenant
-- is looked at.
CREATE FUNCTION tenants_with_events_to_archive(before timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT t.id FROM tenants t LEFT JOIN event_archives a ON a.owner_id = t.id
    WHERE t.deleted_at IS NULL AND (a.file IS NOT NULL OR (
        SELECT e.at FROM events e WHERE e.owner_id = t.id AND e.number > coalesce(a.number, 0)
        ORDER BY e.number LIMIT 1) < before)
$$;

-- Tenants with old calls, or with a file that is not finished.
CREATE FUNCTION tenants_with_calls_to_archive(before timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT tenants_with_old_calls(before) UNION SELECT a.owner_id FROM call_archives a $$;

CREATE FUNCTION tenants_with_old_versions(before timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT v.owner_id FROM breadcrumb_versions v WHERE v.replaced_at < before
        AND EXISTS (SELECT FROM breadcrumbs b WHERE b.owner_id = v.owner_id AND b.id = v.breadcrumb_id)
$$;

-- What is stored, for `rcrt doctor`. Bytes are those on disk, with indexes; of a part of the
-- records, they are those of the contexts.
CREATE FUNCTION stored_sizes() RETURNS TABLE (kind text, entries bigint, bytes bigint, is_on_disk boolean)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    WITH parts AS MATERIALIZED (
        SELECT k.kind, k.place, count(b.id) AS entries, coalesce(sum(b.size_bytes), 0)::bigint AS bytes
        FROM (VALUES ('requests', 2), ('responses', 3), ('other records', 4)) k (kind, place)
        LEFT JOIN breadcrumbs b ON k.kind = CASE b.schema_name
            WHEN 'tool.request.v1' THEN 'requests' WHEN 'tool.create.request.v1' THEN 'requests'
            WHEN 'tool.response.v1' THEN 'responses' WHEN 'tool.create.response.v1' THEN 'responses'
            ELSE 'other records' END
        GROUP BY k.kind, k.place)
    SELECT s.kind, s.entries, s.bytes, s.is_on_disk FROM (
        SELECT 'records' AS kind, 1 AS place, sum(entries)::bigint AS entries,
            pg_total_relation_size('breadcrumbs') + pg_total_relation_size('breadcrumb_tags') AS bytes,
            true AS is_on_disk
        FROM parts
        UNION ALL SELECT kind, place, entries, bytes, false FROM parts
        UNION ALL SELECT 'old versions', 5, (SELECT count(*) FROM breadcrumb_versions),
            pg_total_relation_size('breadcrumb_versions'), true
        UNION ALL SELECT 'embeddings', 6, (SELECT count(*) FROM breadcrumb_embeddings),
            pg_total_relation_size('breadcrumb_embeddings'), true
        UNION ALL SELECT 'calls', 7, (SELECT count(*) FROM calls), pg_total_relation_size('calls'), true
        UNION ALL SELECT 'call statistics', 8, (SELECT count(*) FROM call_stats),
            pg_total_relation_size('call_stats') + pg_total_relation_size('call_outcomes'), true
        UNION ALL SELECT 'events', 9, (SELECT count(*) FROM events),
            (SELECT sum(pg_total_relation_size(p.relid))::bigint FROM pg_partition_tree('events') p)
                + pg_total_relation_size('shared_events'), true
        UNION ALL SELECT 'idempotency keys', 10, (SELECT count(*) FROM idempotency_keys),
            pg_total_relation_size('idempotency_keys'), true
        UNION ALL SELECT 'audit log', 11, (SELECT count(*) FROM audit), pg_total_relation_size('audit'), true
        UNION ALL SELECT 'egress log', 12, (SELECT count(*) FROM egress_log), pg_total_relation_size('egress_log'),
            true) s
    ORDER BY s.place
$$;

-- The retention options of the server that deleted last, in seconds; NULL means forever. Of no
-- tenant, so only the functions below use it.
CREATE TABLE retention (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    calls bigint,
    versions bigint,
    events bigint NOT NULL,
    egress bigint NOT NULL,
    -- Whether calls and events are archived before they are deleted.
    archives boolean NOT NULL,
    recorded_at timestamptz NOT NULL
);
ALTER TABLE retention ENABLE ROW LEVEL SECURITY;

-- Returns whether other options were recorded before.
CREATE FUNCTION record_retention(calls bigint, versions bigint, events bigint, egress bigint, archives boolean)
RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    WITH before AS (SELECT * FROM retention),
    recorded AS (
        INSERT INTO retention (calls, versions, events, egress, archives, recorded_at)
        VALUES ($1, $2, $3, $4, $5, clock_timestamp())
        ON CONFLICT (is_only) DO UPDATE SET calls = $1, versions = $2, events = $3, egress = $4, archives = $5,
            recorded_at = clock_timestamp())
    SELECT EXISTS (
        SELECT FROM before b
        WHERE (b.calls, b.versions, b.events, b.egress, b.archives) IS DISTINCT FROM ($1, $2, $3, $4, $5))
$$;

CREATE FUNCTION recorded_retention()
RETURNS TABLE (calls bigint, versions bigint, events bigint, egress bigint, archives boolean, recorded_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT r.calls, r.versions, r.events, r.egress, r.archives, r.recorded_at FROM retention r $$;

-- The transaction's tenant's events from before this time that do not go with their range, the
-- oldest first: those of the open ranges and of the default partition. With archives, only those
-- that are in a file.
CREATE FUNCTION old_open_events(before timestamptz, archived_only boolean, most bigint) RETURNS SETOF bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    WITH last AS MATERIALIZED (
        SELECT CASE WHEN archived_only OR EXISTS (SELECT FROM retention r WHERE r.archives)
            THEN coalesce((SELECT a.number FROM event_archives a WHERE a.owner_id = current_tenant()), 0)
            ELSE 9223372036854775807 END AS number)
    SELECT n.number FROM (
        (SELECT e.number FROM events e
         WHERE e.owner_id = current_tenant() AND e.at < before AND e.number >= (SELECT first_open_event())
            AND e.number <= (SELECT last.number FROM last)
         ORDER BY e.number LIMIT most)
        UNION
        (SELECT e.number FROM events_rest e
         WHERE e.owner_id = current_tenant() AND e.at < before AND e.number <= (SELECT last.number FROM last)
         ORDER BY e.number LIMIT most)) n
    ORDER BY n.number LIMIT most
$$;

-- The ids of the keys that encrypt secrets of all tenants, for `rcrt doctor`.
CREATE FUNCTION used_secrets_keys() RETURNS SETOF text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT s.key_id FROM secrets s UNION SELECT w.key_id FROM webhook_secrets w ORDER BY 1 $$;

-- The newest migration, for `rcrt doctor`: the role cannot read their table.
CREATE FUNCTION schema_version() RETURNS bigint
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
BEGIN
    RETURN (SELECT max(m.version) FROM _sqlx_migrations m WHERE m.success);
END
$$;
REVOKE ALL ON FUNCTION schema_version() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION schema_version() TO rcrt_app;

REVOKE ALL ON FUNCTION stored_sizes(), record_retention(bigint, bigint, bigint, bigint, boolean),
    recorded_retention(), old_open_events(timestamptz, boolean, bigint), used_secrets_keys() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION stored_sizes(), record_retention(bigint, bigint, bigint, bigint, boolean),
    recorded_retention(), old_open_events(timestamptz, boolean, bigint), used_secrets_keys() TO rcrt_app;

REVOKE ALL ON FUNCTION tenants_with_expired_leases(), tenants_with_passed_deadlines(), tenants_with_orphans(),
    tenants_with_expired_records(), tenants_with_old_events(timestamptz),
    tenants_with_old_idempotency_keys(timestamptz), tenants_with_old_calls(timestamptz),
    tenants_with_events_to_archive(timestamptz), tenants_with_calls_to_archive(timestamptz),
    tenants_with_old_versions(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_expired_leases(), tenants_with_passed_deadlines(), tenants_with_orphans(),
    tenants_with_expired_records(), tenants_with_old_events(timestamptz),
    tenants_with_old_idempotency_keys(timestamptz), tenants_with_old_calls(timestamptz),
    tenants_with_events_to_archive(timestamptz), tenants_with_calls_to_archive(timestamptz),
    tenants_with_old_versions(timestamptz) TO rcrt_app;

-- Deletes a tenant. For callers this takes effect at once: its agents are deleted with it and its
-- name is free. Returns `deleted`, or why not: `unknown`, `last`, `served` (a runner has reported
-- within the last minutes that it works there).
CREATE FUNCTION delete_tenant(tenant uuid) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    was text;
BEGIN
    -- Two deletions at once must not both find the other tenant still there.
    PERFORM pg_advisory_xact_lock(hashtextextended('rcrt.delete_tenant', 0));
    SELECT name INTO was FROM tenants WHERE id = tenant AND deleted_at IS NULL FOR UPDATE;
    IF was IS NULL THEN
        RETURN 'unknown';
    END IF;
    -- A cell may lose its last tenant: the others are elsewhere.
    IF NOT EXISTS (SELECT FROM tenants WHERE id <> tenant AND deleted_at IS NULL)
        AND NOT EXISTS (SELECT FROM cell_identity) THEN
        RETURN 'last';
    END IF;
    IF EXISTS (SELECT FROM breadcrumbs WHERE owner_id = tenant AND schema_name = 'tool.runner.v1' AND ttl > now()) THEN
        RETURN 'served';
    END IF;
    UPDATE tenants SET deleted_at = now(), name = was || ' (deleted, ' || tenant || ')' WHERE id = tenant;
    UPDATE agents SET deleted_at = now(), changed_at = clock_timestamp()
    WHERE owner_id = tenant AND deleted_at IS NULL;
    INSERT INTO audit (owner_id, action, subject, subject_name) VALUES (tenant, 'tenant.deleted', tenant, was);
    RETURN 'deleted';
END
$$;

-- Deletes some of a tenant's rows and returns how many: at most about so many, of one kind. 0 when
-- none is left but those of `agents` and `audit`.
CREATE FUNCTION purge_rows(tenant uuid, most integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
DECLARE
    tenant_column record;
    gone bigint;
BEGIN
    -- Every table with a tenant's column. `shared_events` has no index by its owner and comes last.
    FOR tenant_column IN
        SELECT c.relname, a.attname FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname IN ('owner_id', 'grantee_owner_id')
            AND a.atttypid = 'uuid'::regtype AND NOT a.attisdropped
        WHERE c.relkind = 'r' AND c.relname <> ALL ('{agents,audit,tenants}')
        ORDER BY c.relname = 'shared_events', c.relname
    LOOP
        BEGIN
            EXECUTE format(
                'DELETE FROM public.%1$I WHERE ctid = ANY (ARRAY(
                    SELECT ctid FROM public.%1$I WHERE %2$I = $1 LIMIT $2))',
                tenant_column.relname, tenant_column.attname) USING tenant, most;
            GET DIAGNOSTICS gone = ROW_COUNT;
        EXCEPTION WHEN foreign_key_violation THEN
            -- The rows that reference these come first, in their turn.
            gone := 0;
        END;
        IF gone > 0 THEN
            RETURN gone;
        END IF;
    END LOOP;
    RETURN 0;
END
$$;

-- Deletes some of a deleted tenant's rows and returns how many. 0 when none is left. Servers that
-- purge at the same time take turns. Rows that an older server process wrote late are found too:
-- the tenant itself is deleted a while after its end, when nothing is left. Of its audit log the
-- line of its deletion stays.
CREATE FUNCTION purge_tenant(tenant uuid, most integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    gone bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM tenants WHERE id = tenant AND deleted_at IS NOT NULL) THEN
        RETURN 0;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('rcrt.purge_tenant ' || tenant, 0));
    gone := purge_rows(tenant, most);
    IF gone > 0 THEN
        RETURN gone;
    END IF;
    DELETE FROM audit WHERE owner_id = tenant AND id IN (
        SELECT id FROM audit WHERE owner_id = tenant AND action <> 'tenant.deleted'
        ORDER BY id LIMIT most);
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone = 0 THEN
        DELETE FROM agents WHERE owner_id = tenant
            AND EXISTS (SELECT FROM tenants WHERE id = tenant AND deleted_at < now() - interval '2 minutes');
        GET DIAGNOSTICS gone = ROW_COUNT;
    END IF;
    IF gone = 0 THEN
        DELETE FROM tenants WHERE id = tenant AND deleted_at < now() - interval '2 minutes';
    END IF;
    RETURN gone;
END
$$;

REVOKE ALL ON FUNCTION purge_rows(uuid, integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION delete_tenant(uuid), purge_tenant(uuid, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION delete_tenant(uuid), purge_tenant(uuid, integer) TO rcrt_app;
