-- One event per change of a record, numbered without a sequence.
--
-- A number is the id of the writing transaction, then the event's index within it. A reader takes
-- the numbers below its snapshot's horizon, the oldest transaction still running: nothing can
-- appear there any more, so what is read in order is complete, however late a transaction commits.
-- No writer waits for another.

-- Added to the transaction id, so that a database that was restored into another cluster, or gets a
-- tenant from one, continues its numbers. Both replace this function. Not IMMUTABLE: then plans
-- would keep its result. The sum must grow with the id.
CREATE FUNCTION event_base(transaction bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN 0::bigint;

-- The bases that a database with cells got (`migrations/0014_cells.sql`); each holds from a
-- transaction on.
CREATE TABLE event_bases (
    from_transaction bigint PRIMARY KEY,
    base bigint NOT NULL
);
ALTER TABLE event_bases ENABLE ROW LEVEL SECURITY;

-- A transaction's id in the counting of the events' numbers.
CREATE FUNCTION event_transaction(transaction bigint) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE
RETURN transaction + event_base(transaction);

CREATE FUNCTION event_number(ordinal integer) RETURNS bigint
LANGUAGE sql VOLATILE
RETURN (event_transaction(pg_current_xact_id()::text::bigint) << 12) | ordinal;

CREATE FUNCTION event_horizon() RETURNS bigint
LANGUAGE sql STABLE
RETURN event_transaction(pg_snapshot_xmin(pg_current_snapshot())::text::bigint) << 12;

-- The transaction's snapshot as `xmin:xmax:xip,xip…`, in the counting of the events' numbers.
CREATE FUNCTION event_snapshot() RETURNS text
LANGUAGE sql STABLE
RETURN (
    SELECT format('%s:%s:%s', event_transaction(pg_snapshot_xmin(s)::text::bigint),
        event_transaction(pg_snapshot_xmax(s)::text::bigint),
        (SELECT string_agg(event_transaction(x::text::bigint)::text, ',') FROM pg_snapshot_xip(s) x))
    FROM pg_current_snapshot() s
);

-- The numbers that a restore skipped, both ends excluded: a subscriber may have seen one of them
-- in what was lost.
CREATE TABLE restores (
    restored_at timestamptz NOT NULL DEFAULT now(),
    last_number bigint NOT NULL,
    next_number bigint NOT NULL CHECK (next_number > last_number)
);
ALTER TABLE restores ENABLE ROW LEVEL SECURITY;

CREATE FUNCTION event_was_lost(wanted bigint) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT EXISTS (SELECT FROM restores WHERE last_number < wanted AND wanted < next_number) $$;
REVOKE ALL ON FUNCTION event_was_lost(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION event_was_lost(bigint) TO rcrt_app;

-- The content is in breadcrumbs or breadcrumb_versions, under the same version.
CREATE TABLE events (
    owner_id uuid NOT NULL,
    number bigint NOT NULL,
    kind text NOT NULL
        CHECK (kind IN ('breadcrumb.created', 'breadcrumb.updated', 'breadcrumb.deleted')),
    breadcrumb_id uuid NOT NULL,
    version bigint NOT NULL,
    at timestamptz NOT NULL,
    -- Bytes of the context, so that a reader can bound what it takes at once.
    size_bytes bigint NOT NULL,
    PRIMARY KEY (owner_id, number)
) PARTITION BY RANGE (number);
CREATE INDEX events_age ON events USING brin (at);
ALTER TABLE events ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON events
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON events TO rcrt_app;

-- Partitions are ranges of numbers, about a day each, made ahead
-- (docs/decisions/0028-events-in-partitions.md). The role reaches their rows only through `events`.
-- What no range covers, such as the numbers after a restore, is in the default partition.
CREATE TABLE events_rest PARTITION OF events DEFAULT;
ALTER TABLE events_rest ENABLE ROW LEVEL SECURITY;

-- The ranges, and how far the numbers were when each was made. Of no tenant, so only the functions
-- below use it.
CREATE TABLE event_ranges (
    first_number bigint PRIMARY KEY,
    next_number bigint NOT NULL CHECK (next_number > first_number),
    made_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    made_at_number bigint NOT NULL
);
ALTER TABLE event_ranges ENABLE ROW LEVEL SECURITY;

-- Makes partitions until two that are empty are ahead. Returns how many it made. Without the locks
-- within a second it fails, and is tried again a minute later.
CREATE FUNCTION extend_event_ranges() RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
    present bigint := event_number(0);
    -- A million transactions.
    width bigint := 1::bigint << 32;
    start bigint;
    earlier event_ranges;
    made integer := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('rcrt.event_ranges', 0));
    -- What a day used, as far as it is known. The numbers that a restore or a new base skipped were
    -- not used.
    SELECT * INTO earlier FROM event_ranges r WHERE r.made_at < clock_timestamp() - interval '1 hour'
        AND r.made_at_number >= greatest((SELECT max(e.next_number) FROM restores e),
            (SELECT max((b.from_transaction + b.base) << 12) FROM event_bases b), 0)
        AND r.made_at_number < present ORDER BY r.made_at > clock_timestamp() - interval '1 day', r.made_at DESC LIMIT 1;
    IF FOUND THEN
        width := greatest(width, ((present - earlier.made_at_number)
            * (86400 / extract(epoch FROM clock_timestamp() - earlier.made_at)))::bigint);
    END IF;
    -- Whole transactions.
    width := (width >> 12) << 12;
    WHILE (SELECT count(*) FROM event_ranges r WHERE r.first_number > present) < 2 LOOP
        -- The first range includes the present number, also in a cluster that has counted many
        -- transactions: there are no events yet.
        SELECT coalesce(max(r.next_number), (present >> 32) << 32) INTO start FROM event_ranges r;
        -- After a jump of the numbers: above those that are being written to the default partition.
        IF start <= present AND EXISTS (SELECT FROM event_ranges) THEN
            start := present + (10000::bigint << 12);
        END IF;
        EXECUTE format('CREATE TABLE public.%I PARTITION OF public.events FOR VALUES FROM (%s) TO (%s)',
            'events_' || start, start, start + width);
        EXECUTE format('ALTER TABLE public.%I ENABLE ROW LEVEL SECURITY', 'events_' || start);
        INSERT INTO event_ranges (first_number, next_number, made_at_number) VALUES (start, start + width, present);
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;

-- Up to which number a tenant's events are in archives, and the file that is being written: its
-- name and its last event (crates/storage/store/src/transfer/archive).
CREATE TABLE event_archives (
    owner_id uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    number bigint NOT NULL,
    file text,
    last_number bigint CHECK (last_number > number),
    CHECK ((file IS NULL) = (last_number IS NULL))
);
ALTER TABLE event_archives ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON event_archives
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE ON event_archives TO rcrt_app;

-- The ranges that no transaction writes any more, that have only events from before this time and,
-- if the servers archive, none that is not in a file.
CREATE FUNCTION old_event_ranges(before timestamptz) RETURNS TABLE (first_number bigint, next_number bigint)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    are_archived boolean := coalesce((SELECT r.archives FROM recorded_retention() r), false);
    is_old boolean;
BEGIN
    FOR first_number, next_number IN
        SELECT r.first_number, r.next_number FROM event_ranges r WHERE r.next_number <= event_horizon()
        ORDER BY r.first_number
    LOOP
        EXECUTE format(
            'SELECT NOT EXISTS (SELECT FROM public.%1$I WHERE at >= $1) AND NOT ($2 AND EXISTS (
                SELECT FROM public.%1$I e JOIN public.tenants t ON t.id = e.owner_id AND t.deleted_at IS NULL
                LEFT JOIN public.event_archives a ON a.owner_id = e.owner_id
                WHERE e.number > coalesce(a.number, 0)))', 'events_' || first_number)
            INTO is_old USING before, are_archived;
        EXIT WHEN NOT is_old;
        RETURN NEXT;
    END LOOP;
END
$$;

-- From which number on events are deleted one by one: those below are dropped with their range.
CREATE FUNCTION first_open_event() RETURNS bigint
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT coalesce(min(r.first_number), 0) FROM event_ranges r WHERE r.next_number > event_horizon() $$;

-- Changes of records that another tenant may follow, written with the change. Numbers have one
-- order over all tenants.
CREATE TABLE shared_events (
    grantee_owner_id uuid NOT NULL,
    number bigint NOT NULL,
    -- The record's tenant.
    owner_id uuid NOT NULL,
    kind text NOT NULL
        CHECK (kind IN ('breadcrumb.created', 'breadcrumb.updated', 'breadcrumb.deleted')),
    breadcrumb_id uuid NOT NULL,
    version bigint NOT NULL,
    at timestamptz NOT NULL,
    size_bytes bigint NOT NULL,
    PRIMARY KEY (grantee_owner_id, number)
);
CREATE INDEX shared_events_age ON shared_events USING brin (at);
ALTER TABLE shared_events ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON shared_events
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON shared_events TO rcrt_app;
CREATE POLICY grantee ON shared_events FOR SELECT
    USING (grantee_owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);

-- The newest event of each tenant that was pruned: a reader before it has missed events.
CREATE TABLE pruned_events (
    owner_id uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    number bigint NOT NULL
);
ALTER TABLE pruned_events ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON pruned_events
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON pruned_events TO rcrt_app;

-- The tenants with deletions in a range, whose work must be done before the range is dropped.
CREATE FUNCTION tenants_with_deletions(first_number bigint, next_number bigint) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT e.owner_id FROM events e
    WHERE e.number >= $1 AND e.number < $2 AND e.kind = 'breadcrumb.deleted'
$$;

-- Drops a range, if all of it is older than the retention that was recorded. Subscribers before it
-- learn that they missed events. Returns whether it was dropped.
CREATE FUNCTION drop_event_range(first bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
    kept bigint := (SELECT r.events FROM recorded_retention() r);
BEGIN
    PERFORM pg_advisory_xact_lock(hashtextextended('rcrt.event_ranges', 0));
    IF kept IS NULL OR NOT EXISTS (
        SELECT FROM old_event_ranges(clock_timestamp() - kept * interval '1 second') o
        WHERE o.first_number = first) THEN
        RETURN false;
    END IF;
    EXECUTE format(
        'INSERT INTO pruned_events AS f (owner_id, number)
         SELECT e.owner_id, max(e.number) FROM public.%I e JOIN tenants t ON t.id = e.owner_id GROUP BY e.owner_id
         ON CONFLICT (owner_id) DO UPDATE SET number = greatest(f.number, EXCLUDED.number)', 'events_' || first);
    EXECUTE format('DROP TABLE public.%I', 'events_' || first);
    DELETE FROM event_ranges r WHERE r.first_number = first;
    RETURN true;
END
$$;

REVOKE ALL ON FUNCTION extend_event_ranges(), old_event_ranges(timestamptz), first_open_event(),
    tenants_with_deletions(bigint, bigint), drop_event_range(bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION extend_event_ranges(), old_event_ranges(timestamptz), first_open_event(),
    tenants_with_deletions(bigint, bigint), drop_event_range(bigint) TO rcrt_app;

SELECT extend_event_ranges();

-- Up to which number the tenant's events may have been pruned. Sets the tenant until the end of
-- the transaction.
CREATE FUNCTION pruned_up_to(tenant uuid) RETURNS bigint
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    PERFORM set_config('rcrt.tenant', tenant::text, true);
    RETURN coalesce((SELECT f.number FROM pruned_events f WHERE f.owner_id = tenant), 0);
END
$$;

-- The next complete events after a number, with their contents unless the caller knows them, and
-- with what decides who can see an event: of the tenant's own records visibility, creator and
-- grantees; of other tenants' records (`owner_id` is not the tenant) the bare event. A last row
-- without a number says that there are more, which may wait for an older transaction: it is asked
-- afterwards and without the horizon, so that events that moved below it in between count too.
--
-- An event is judged by the version that it names as well as by the record as it is now or was at
-- its deletion: an agent that cannot read an old version must not get it from the event feed.
--
-- The plan is made once per connection. Each record is looked up by its key: a join's plan for
-- empty tables would read all of the tenant's records for each event.
CREATE FUNCTION read_events(tenant uuid, after bigint, most bigint, most_bytes bigint, known bigint[])
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
            CASE WHEN 'private' IN (b.visibility, v.visibility, last.visibility) THEN grant_subscribers(n.unknown) END
        FROM next n
        LEFT JOIN LATERAL (
            SELECT * FROM breadcrumbs r WHERE r.owner_id = tenant AND r.id = n.unknown LIMIT 1) b ON true
        LEFT JOIN LATERAL (
            SELECT o.tags, o.schema_name, o.context, o.sensitivity, o.created_by,
                coalesce(o.visibility, 'private') AS visibility
            FROM breadcrumb_versions o
            WHERE o.owner_id = tenant AND o.breadcrumb_id = n.unknown AND o.version = n.version
            LIMIT 1) v ON true
        -- Of a deleted record its last version: older events reveal no more than while it existed.
        LEFT JOIN LATERAL (
            SELECT coalesce(l.visibility, 'private') AS visibility, l.sensitivity FROM breadcrumb_versions l
            WHERE b.id IS NULL AND l.owner_id = tenant AND l.breadcrumb_id = n.unknown
            ORDER BY l.version DESC LIMIT 1) last ON true
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

-- Contents of events of other tenants' records, and which agents and tenants of the transaction's
-- tenant can see them. No row for a record without a grant to follow it.
CREATE FUNCTION shared_event_contents(records uuid[], record_versions bigint[])
RETURNS TABLE (breadcrumb_id uuid, version bigint, tags text[], schema_name text, context json, is_secret boolean,
    readers uuid[])
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    WITH wanted AS (
        SELECT k.record, k.version, g.owner_id,
            array_agg(coalesce(g.grantee_agent_id, g.grantee_owner_id)) AS readers
        FROM unnest(records, record_versions) AS k (record, version)
        JOIN acl_grants g ON g.breadcrumb_id = k.record AND g.grantee_owner_id = current_tenant()
            AND g.grantee_owner_id <> g.owner_id AND 'subscribe' = ANY (g.actions)
        GROUP BY k.record, k.version, g.owner_id)
    SELECT k.record, k.version,
        CASE WHEN b.version = k.version THEN b.tags ELSE v.tags END,
        CASE WHEN b.version = k.version THEN b.schema_name ELSE v.schema_name END,
        CASE WHEN secret.is_secret THEN NULL
            WHEN b.version = k.version THEN b.context ELSE v.context END,
        secret.is_secret, k.readers
    FROM wanted k
    LEFT JOIN breadcrumbs b ON b.owner_id = k.owner_id AND b.id = k.record
    LEFT JOIN breadcrumb_versions v
        ON v.owner_id = k.owner_id AND v.breadcrumb_id = k.record AND v.version = k.version
    LEFT JOIN LATERAL (
        SELECT l.sensitivity FROM breadcrumb_versions l
        WHERE b.id IS NULL AND l.owner_id = k.owner_id AND l.breadcrumb_id = k.record
        ORDER BY l.version DESC LIMIT 1) last ON true
    CROSS JOIN LATERAL (
        SELECT coalesce('secret' IN (b.sensitivity, v.sensitivity, last.sensitivity), false)
            AS is_secret) secret
$$;

-- Whether an agent of the tenant can see the event of this version of one of the tenant's records.
-- Called by a transaction that sees all. Curators and runners see all.
CREATE FUNCTION agent_can_see_version(agent uuid, record uuid, record_version bigint) RETURNS boolean
LANGUAGE sql STABLE
AS $$
    SELECT CASE
        -- Without a role that follows events it sees none.
        WHEN EXISTS (SELECT FROM agents a WHERE a.id = agent
            AND (a.deleted_at IS NOT NULL OR NOT a.roles && '{curator,runner,subscriber}'::text[])) THEN false
        WHEN NOT coalesce('private' IN (b.visibility, v.visibility, last.visibility), false) THEN true
        WHEN coalesce(b.created_by, v.created_by) = agent THEN true
        WHEN EXISTS (SELECT FROM agents a WHERE a.id = agent AND a.deleted_at IS NULL
            AND a.roles && '{curator,runner}'::text[]) THEN true
        ELSE coalesce(grant_subscribers(record) && ARRAY[agent, current_tenant()], false)
    END
    FROM (SELECT 1) one
    LEFT JOIN breadcrumbs b ON b.owner_id = current_tenant() AND b.id = record
    LEFT JOIN LATERAL (
        SELECT o.created_by, coalesce(o.visibility, 'private') AS visibility FROM breadcrumb_versions o
        WHERE o.owner_id = current_tenant() AND o.breadcrumb_id = record
            AND o.version = record_version) v ON true
    LEFT JOIN LATERAL (
        SELECT coalesce(l.visibility, 'private') AS visibility FROM breadcrumb_versions l
        WHERE b.id IS NULL AND l.owner_id = current_tenant() AND l.breadcrumb_id = record
        ORDER BY l.version DESC LIMIT 1) last ON true
$$;

REVOKE ALL ON FUNCTION shared_event_contents(uuid[], bigint[]), agent_can_see_version(uuid, uuid, bigint)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION shared_event_contents(uuid[], bigint[]), agent_can_see_version(uuid, uuid, bigint)
    TO rcrt_app;

-- A follower does something for every event, in order, and continues after a crash where it was.
-- It is a name with a cursor in each tenant. The cursor moves in the transaction that does the
-- work.
CREATE TABLE event_cursors (
    owner_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    follower text NOT NULL,
    -- The number of the last event that was handled.
    number bigint NOT NULL,
    moved_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_id, follower)
) WITH (fillfactor = 50);
ALTER TABLE event_cursors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON event_cursors
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON event_cursors TO rcrt_app;

-- Which process follows under each name. It saves the others the work; the cursor alone ensures
-- that no event is handled twice. Of no tenant, so only the functions below use it.
CREATE TABLE follower_leases (
    follower text PRIMARY KEY,
    holder uuid NOT NULL,
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE follower_leases ENABLE ROW LEVEL SECURITY;

-- Takes or extends the lease, and returns the tenants with events after their cursor; with
-- `every_tenant` also those without a cursor. The first row has no tenant and says whether the
-- lease is held.
CREATE FUNCTION follow_events(wanted text, who uuid, lease_ms double precision, every_tenant boolean)
RETURNS TABLE (is_held boolean, tenant uuid)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    lease follower_leases;
    given interval := lease_ms * interval '1 millisecond';
BEGIN
    SELECT * INTO lease FROM follower_leases l WHERE l.follower = wanted;
    IF lease.holder IS NULL OR lease.lease_until <= clock_timestamp()
        OR (lease.holder = who AND lease.lease_until < clock_timestamp() + given / 2) THEN
        INSERT INTO follower_leases AS l VALUES (wanted, who, clock_timestamp() + given)
        ON CONFLICT (follower) DO UPDATE SET holder = who, lease_until = clock_timestamp() + given
        WHERE l.holder = who OR l.lease_until <= clock_timestamp();
        SELECT * INTO lease FROM follower_leases l WHERE l.follower = wanted;
    END IF;
    RETURN QUERY SELECT lease.holder = who, NULL::uuid;
    IF lease.holder = who THEN
        RETURN QUERY
        SELECT true, c.owner_id FROM event_cursors c
        WHERE c.follower = wanted AND EXISTS (SELECT FROM events e WHERE e.owner_id = c.owner_id AND e.number > c.number);
        IF every_tenant THEN
            RETURN QUERY
            SELECT true, t.id FROM tenants t
            WHERE t.deleted_at IS NULL AND NOT EXISTS (SELECT FROM fenced_tenants f WHERE f.tenant = t.id)
                AND NOT EXISTS (SELECT FROM event_cursors c WHERE c.owner_id = t.id AND c.follower = wanted);
        END IF;
    END IF;
END
$$;

-- Releases the lease, so that another process need not wait for its end.
CREATE FUNCTION stop_following(wanted text, who uuid) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ DELETE FROM follower_leases WHERE follower = wanted AND holder = who $$;

REVOKE ALL ON FUNCTION follow_events(text, uuid, double precision, boolean),
    stop_following(text, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION follow_events(text, uuid, double precision, boolean),
    stop_following(text, uuid) TO rcrt_app;
