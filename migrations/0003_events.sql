-- One event per change of a record, numbered without a sequence.
--
-- A number is the writing transaction's id, then the event's place within the transaction. A reader takes the numbers
-- below its snapshot's horizon, the oldest transaction still running: nothing can appear there any more, so what is
-- read in order is complete, however late a transaction commits. Writers wait for nobody.

CREATE FUNCTION event_number(ordinal integer) RETURNS bigint
LANGUAGE sql VOLATILE
RETURN (pg_current_xact_id()::text::bigint << 12) | ordinal;

CREATE FUNCTION event_horizon() RETURNS bigint
LANGUAGE sql STABLE
RETURN pg_snapshot_xmin(pg_current_snapshot())::text::bigint << 12;

-- The content stands in breadcrumbs or breadcrumb_versions, under the same version.
CREATE TABLE events (
    owner_id uuid NOT NULL,
    number bigint NOT NULL,
    kind text NOT NULL CHECK (kind IN ('breadcrumb.created', 'breadcrumb.updated', 'breadcrumb.deleted')),
    breadcrumb_id uuid NOT NULL,
    version bigint NOT NULL,
    at timestamptz NOT NULL,
    -- Bytes of the context, so that a reader can bound what it takes at once.
    size_bytes bigint NOT NULL,
    PRIMARY KEY (owner_id, number)
);
CREATE INDEX events_age ON events USING brin (at);

ALTER TABLE events ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON events USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON events TO rcrt_app;
