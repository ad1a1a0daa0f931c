-- What kind of agent asks, and until when a request is worth answering.

-- A profile that this table does not know would open what another version closes.
ALTER TABLE agents
    ADD COLUMN profile text NOT NULL DEFAULT 'main'
        CHECK (profile IN ('main', 'subagent', 'scheduled', 'a2asynthesis'));

ALTER TABLE calls
    -- Of the writer and of the calls that led to the request, as they stood when it was written. `main` closes nothing
    -- and is not kept.
    ADD COLUMN profiles text[] NOT NULL DEFAULT '{}',
    ADD COLUMN deadline_at timestamptz;
-- What waits with a deadline: few of those that wait.
CREATE INDEX calls_with_deadline ON calls (owner_id, deadline_at) WHERE state = 'queued' AND deadline_at IS NOT NULL;

CREATE FUNCTION tenants_with_passed_deadlines() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM calls WHERE state = 'queued' AND deadline_at <= now()
$$;

REVOKE ALL ON FUNCTION tenants_with_passed_deadlines() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_passed_deadlines() TO rcrt_app;
