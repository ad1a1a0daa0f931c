-- Those who do something for every event, in its order, and go on where they stood after a crash.
--
-- A follower is a name; it has a cursor in each tenant, which moves in the transaction that does what the events ask
-- for. Nothing of this is on a writer's way.

CREATE TABLE event_cursors (
    owner_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    follower text NOT NULL,
    -- The number of the last event that was taken, or one before the first that may be.
    number bigint NOT NULL,
    moved_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_id, follower)
) WITH (fillfactor = 50);

ALTER TABLE event_cursors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON event_cursors USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON event_cursors TO rcrt_app;

-- The newest event of each tenant that was forgotten: who stands before it has missed events.
CREATE TABLE forgotten_events (
    owner_id uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    number bigint NOT NULL
);

ALTER TABLE forgotten_events ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON forgotten_events USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON forgotten_events TO rcrt_app;

-- Which process follows, under each name. It saves the others the work; that no event is taken twice is the cursor's.
-- No tenant's rows, so it is behind the two functions below.
CREATE TABLE follower_leases (
    follower text PRIMARY KEY,
    holder uuid NOT NULL,
    lease_until timestamptz NOT NULL
) WITH (fillfactor = 50);

-- Takes or keeps the lease, and gives the tenants with events after their cursor; with `every_tenant` also those that have
-- no cursor yet. The first row has no tenant and says whether the lease is held.
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
            WHERE t.deleted_at IS NULL
                AND NOT EXISTS (SELECT FROM event_cursors c WHERE c.owner_id = t.id AND c.follower = wanted);
        END IF;
    END IF;
END
$$;

-- Gives the lease back, so that another process need not wait for its end.
CREATE FUNCTION stop_following(wanted text, who uuid) RETURNS void
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ DELETE FROM follower_leases WHERE follower = wanted AND holder = who $$;

REVOKE ALL ON FUNCTION follow_events(text, uuid, double precision, boolean), stop_following(text, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION follow_events(text, uuid, double precision, boolean), stop_following(text, uuid) TO rcrt_app;
