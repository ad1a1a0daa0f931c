-- Tenants that are made, renamed and deleted by name and by id.
--
-- A deleted tenant is gone to everybody at once: its agents are deleted with it and its name is free. Its rows go in
-- batches, each a short transaction of its own that locks nothing but what it takes away.

ALTER TABLE tenants ADD COLUMN deleted_at timestamptz;

CREATE OR REPLACE FUNCTION ensure_tenant(new_id uuid, wanted text) RETURNS SETOF tenants
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
BEGIN
    INSERT INTO tenants (id, name) VALUES (new_id, wanted) ON CONFLICT (name) DO NOTHING;
    RETURN QUERY SELECT * FROM tenants WHERE name = wanted AND deleted_at IS NULL;
END
$$;

CREATE OR REPLACE FUNCTION all_tenants() RETURNS SETOF tenants
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT * FROM tenants WHERE deleted_at IS NULL ORDER BY name $$;

CREATE FUNCTION one_tenant(tenant uuid) RETURNS SETOF tenants
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT * FROM tenants WHERE id = tenant AND deleted_at IS NULL $$;

-- Makes the tenant, or renames it. No row when its id is a deleted one's.
CREATE FUNCTION put_tenant(tenant uuid, wanted text)
RETURNS TABLE (id uuid, name text, created_at timestamptz, is_new boolean)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    INSERT INTO tenants AS t (id, name) SELECT tenant, wanted
    -- Also long after: the tokens of its agents would be good again. The line stays when all else is gone.
    WHERE EXISTS (SELECT FROM tenants there WHERE there.id = tenant)
        OR NOT EXISTS (SELECT FROM audit a WHERE a.owner_id = tenant AND a.action = 'tenant.deleted')
    ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name WHERE t.deleted_at IS NULL
    RETURNING t.id, t.name, t.created_at, t.xmax = 0
$$;

-- `deleted`, or why not: `unknown`, `last`, `served` (a runner has told within the last minutes that it is at work there).
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
    IF NOT EXISTS (SELECT FROM tenants WHERE id <> tenant AND deleted_at IS NULL) THEN
        RETURN 'last';
    END IF;
    IF EXISTS (SELECT FROM breadcrumbs WHERE owner_id = tenant AND schema_name = 'tool.runner.v1' AND ttl > now()) THEN
        RETURN 'served';
    END IF;
    UPDATE tenants SET deleted_at = now(), name = was || ' (deleted, ' || tenant || ')' WHERE id = tenant;
    UPDATE agents SET deleted_at = now() WHERE owner_id = tenant AND deleted_at IS NULL;
    INSERT INTO audit (owner_id, action, subject, subject_name) VALUES (tenant, 'tenant.deleted', tenant, was);
    RETURN 'deleted';
END
$$;

CREATE FUNCTION deleted_tenants() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT id FROM tenants WHERE deleted_at IS NOT NULL $$;

-- Takes away some of a deleted tenant's rows and gives how many: about so many at most, of one kind at a time. 0 when
-- none is left. Servers that are at it together take turns. What an older server process wrote late is found too: the tenant
-- itself goes a while after its end, and only when nothing is left. Of its audit log, the line of its deletion stays.
CREATE FUNCTION purge_tenant(tenant uuid, most integer) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    ids uuid[];
    numbers bigint[];
    place record;
    gone bigint;
BEGIN
    IF NOT EXISTS (SELECT FROM tenants WHERE id = tenant AND deleted_at IS NOT NULL) THEN
        RETURN 0;
    END IF;
    PERFORM pg_advisory_xact_lock(hashtextextended('rcrt.purge_tenant ' || tenant, 0));
    DELETE FROM breadcrumb_tags t USING (
        SELECT tag, breadcrumb_id FROM breadcrumb_tags WHERE owner_id = tenant LIMIT most) batch
    WHERE t.owner_id = tenant AND t.tag = batch.tag AND t.breadcrumb_id = batch.breadcrumb_id;
    GET DIAGNOSTICS gone = ROW_COUNT;
    IF gone > 0 THEN
        RETURN gone;
    END IF;
    -- Calls and versions go by their record: their own indices do not begin with the tenant.
    ids := ARRAY(SELECT id FROM breadcrumbs WHERE owner_id = tenant LIMIT most);
    IF cardinality(ids) > 0 THEN
        DELETE FROM calls WHERE request = ANY (ids) AND owner_id = tenant;
        DELETE FROM breadcrumb_versions WHERE breadcrumb_id = ANY (ids) AND owner_id = tenant;
        DELETE FROM breadcrumbs WHERE id = ANY (ids);
        RETURN cardinality(ids);
    END IF;
    -- Those of deleted records too.
    SELECT coalesce(array_agg(e.number), '{}'), coalesce(array_agg(DISTINCT e.breadcrumb_id), '{}') INTO numbers, ids
    FROM (SELECT number, breadcrumb_id FROM events WHERE owner_id = tenant LIMIT most) e;
    IF cardinality(numbers) > 0 THEN
        DELETE FROM calls WHERE request = ANY (ids) AND owner_id = tenant;
        DELETE FROM breadcrumb_versions WHERE breadcrumb_id = ANY (ids) AND owner_id = tenant;
        DELETE FROM events WHERE owner_id = tenant AND number = ANY (numbers);
        RETURN cardinality(numbers);
    END IF;
    -- Everything else that says whose it is, whichever migration made it; the large ones last, since that reads them.
    FOR place IN
        SELECT c.relname, a.attname FROM pg_class c
        JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'public'
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname IN ('owner_id', 'grantee_owner_id')
            AND a.atttypid = 'uuid'::regtype AND NOT a.attisdropped
        WHERE c.relkind = 'r' AND c.relname <> ALL ('{agents,audit,tenants}')
        ORDER BY c.relname = ANY ('{calls,breadcrumb_versions,breadcrumbs,breadcrumb_tags,events}'), c.relname
    LOOP
        BEGIN
            EXECUTE format(
                'DELETE FROM %1$I WHERE ctid = ANY (ARRAY(SELECT ctid FROM %1$I WHERE %2$I = $1 LIMIT $2))',
                place.relname, place.attname) USING tenant, most;
            GET DIAGNOSTICS gone = ROW_COUNT;
        EXCEPTION WHEN foreign_key_violation THEN
            -- What points to these rows comes first, in its turn.
            gone := 0;
        END;
        IF gone > 0 THEN
            RETURN gone;
        END IF;
    END LOOP;
    DELETE FROM audit WHERE id IN (
        SELECT id FROM audit WHERE owner_id = tenant AND action <> 'tenant.deleted' ORDER BY id LIMIT most);
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

REVOKE ALL ON FUNCTION one_tenant(uuid), put_tenant(uuid, text), delete_tenant(uuid), deleted_tenants(),
    purge_tenant(uuid, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION one_tenant(uuid), put_tenant(uuid, text), delete_tenant(uuid), deleted_tenants(),
    purge_tenant(uuid, integer) TO rcrt_app;
