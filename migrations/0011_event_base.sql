-- A database that was restored into another cluster goes on counting its events where it was, and not where that
-- cluster's transactions are.

-- Added to the id of a transaction. A restore replaces it (crates/storage/store/src/restoring.rs).
CREATE FUNCTION event_base() RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN 0::bigint;

CREATE OR REPLACE FUNCTION event_number(ordinal integer) RETURNS bigint
LANGUAGE sql VOLATILE
RETURN ((pg_current_xact_id()::text::bigint + event_base()) << 12) | ordinal;

CREATE OR REPLACE FUNCTION event_horizon() RETURNS bigint
LANGUAGE sql STABLE
RETURN (pg_snapshot_xmin(pg_current_snapshot())::text::bigint + event_base()) << 12;

-- The transaction's snapshot as `xmin:xmax:xip,xip…`, in the counting of the events' numbers.
CREATE FUNCTION event_snapshot() RETURNS text
LANGUAGE sql STABLE
RETURN (
    SELECT format('%s:%s:%s', pg_snapshot_xmin(s)::text::bigint + event_base(),
        pg_snapshot_xmax(s)::text::bigint + event_base(),
        (SELECT string_agg((x::text::bigint + event_base())::text, ',') FROM pg_snapshot_xip(s) x))
    FROM pg_current_snapshot() s
);

-- The numbers that a restore left out, both ends excluded: somebody may have seen one of them, in what was lost.
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
