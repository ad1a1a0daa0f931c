-- An event is judged by the version that it tells as well as by the record as it is now, or was in the end: who may not read
-- an old version in the history must not get its context from the event feed. As in 0111, a version from before visibility
-- was kept counts as private. Present records always have a visibility.

-- As in 0071 but for what is private. Each row is still looked up by its id.
CREATE OR REPLACE FUNCTION followed_events(tenant uuid, after bigint, most bigint, most_bytes bigint, known bigint[])
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
            coalesce('private' IN (b.visibility, v.visibility, last.visibility), false),
            coalesce(b.created_by, v.created_by),
            CASE WHEN 'private' IN (b.visibility, v.visibility, last.visibility) THEN acl_readers(n.unknown) END
        FROM next n
        LEFT JOIN LATERAL (SELECT * FROM breadcrumbs r WHERE r.id = n.unknown LIMIT 1) b ON true
        LEFT JOIN LATERAL (
            SELECT o.tags, o.schema_name, o.context, o.sensitivity, o.created_by,
                coalesce(o.visibility, 'private') AS visibility
            FROM breadcrumb_versions o
            WHERE o.breadcrumb_id = n.unknown AND o.version = n.version LIMIT 1) v ON true
        -- Of a deleted record, what it was in the end: its older events tell no more than when it was there.
        LEFT JOIN LATERAL (
            SELECT coalesce(l.visibility, 'private') AS visibility, l.sensitivity FROM breadcrumb_versions l
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

-- As in 0020 but for what is private.
CREATE OR REPLACE FUNCTION hears(agent uuid, record uuid, record_version bigint) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT CASE
        -- Who may not follow events hears of none, however it came to ask.
        WHEN EXISTS (SELECT FROM agents a WHERE a.id = agent
            AND (a.deleted_at IS NOT NULL OR NOT a.roles && '{curator,runner,subscriber}'::text[])) THEN false
        WHEN NOT coalesce('private' IN (b.visibility, v.visibility, last.visibility), false) THEN true
        WHEN coalesce(b.created_by, v.created_by) = agent THEN true
        WHEN EXISTS (SELECT FROM agents a WHERE a.id = agent AND a.deleted_at IS NULL
            AND a.roles && '{curator,runner}'::text[]) THEN true
        ELSE coalesce(acl_readers(record) && ARRAY[agent, current_tenant()], false)
    END
    FROM (SELECT 1) one
    LEFT JOIN breadcrumbs b ON b.id = record
    LEFT JOIN LATERAL (
        SELECT o.created_by, coalesce(o.visibility, 'private') AS visibility FROM breadcrumb_versions o
        WHERE o.breadcrumb_id = record AND o.version = record_version) v ON true
    LEFT JOIN LATERAL (
        SELECT coalesce(l.visibility, 'private') AS visibility FROM breadcrumb_versions l
        WHERE b.id IS NULL AND l.breadcrumb_id = record ORDER BY l.version DESC LIMIT 1) last ON true
$$;
