-- The selectors of agents: which events an agent subscribes to.

-- One row per agent that ever had a selector. Every change locks it; its version orders changes.
CREATE TABLE agent_selectors (
    owner_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    version bigint NOT NULL,
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (owner_id, agent_id)
);
CREATE INDEX agent_selectors_changed ON agent_selectors (changed_at);
ALTER TABLE agent_selectors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON agent_selectors
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE ON agent_selectors TO rcrt_app;

CREATE TABLE selectors (
    owner_id uuid NOT NULL,
    id uuid NOT NULL,
    agent_id uuid NOT NULL,
    selector json NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_id, id),
    FOREIGN KEY (owner_id, agent_id) REFERENCES agent_selectors ON DELETE CASCADE
);
CREATE INDEX selectors_by_agent ON selectors (owner_id, agent_id, created_at, id);
ALTER TABLE selectors ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON selectors
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON selectors TO rcrt_app;

-- Whose selectors changed within the last seconds, in all tenants, for servers whose open streams
-- follow them. A server that has the version need not read them.
CREATE FUNCTION selectors_changed_within(seconds double precision)
RETURNS TABLE (owner_id uuid, agent_id uuid, version bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT s.owner_id, s.agent_id, s.version FROM agent_selectors s
    WHERE s.changed_at > clock_timestamp() - seconds * interval '1 second'
$$;
REVOKE ALL ON FUNCTION selectors_changed_within(double precision) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION selectors_changed_within(double precision) TO rcrt_app;
