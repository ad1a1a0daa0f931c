-- What left through the egress gate, for whom, and what was refused.
CREATE TABLE egress_log (
    owner_id uuid NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL,
    agent_id uuid,
    tool text NOT NULL,
    tool_id uuid,
    call uuid,
    host text NOT NULL,
    port integer NOT NULL CHECK (port BETWEEN 0 AND 65535),
    method text NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('answered', 'refused', 'failed')),
    reason text,
    status integer,
    bytes_out bigint NOT NULL CHECK (bytes_out >= 0),
    bytes_in bigint NOT NULL CHECK (bytes_in >= 0),
    duration_ms bigint NOT NULL CHECK (duration_ms >= 0),
    PRIMARY KEY (owner_id, id),
    CHECK ((outcome = 'answered') = (status IS NOT NULL))
);
CREATE INDEX egress_log_oldest ON egress_log (at);
ALTER TABLE egress_log ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON egress_log
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON egress_log TO rcrt_app;

-- The tenants with entries from before this time, or with more than so many.
CREATE FUNCTION tenants_with_old_egress(before timestamptz, most bigint) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT owner_id FROM egress_log WHERE at < before
    UNION SELECT owner_id FROM egress_log GROUP BY owner_id HAVING count(*) > most
$$;

REVOKE ALL ON FUNCTION tenants_with_old_egress(timestamptz, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_old_egress(timestamptz, bigint) TO rcrt_app;
