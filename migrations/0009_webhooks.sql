-- Webhooks: where an agent wants its events posted, and the deliveries to be posted.
--
--     waiting ──take──► sending ──2xx──► (deleted)
--        ▲                 │
--        ├── failed, or ───┤
--        │   lease ended   └── given up ──► dead ──retry──► waiting
CREATE TABLE webhooks (
    owner_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    id uuid NOT NULL,
    -- Whose events. No foreign key: a server with open auth has agents that are in no table.
    agent_id uuid NOT NULL,
    url text NOT NULL,
    description text,
    -- NULL: the agent's own selectors decide. json, so that it is returned as it was written.
    selector json,
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'paused')),
    paused_because text,
    -- For a webhook of one call: the call's request, the webhook's name among those of the call,
    -- and the call's conversation.
    request uuid,
    name text,
    context_id text,
    -- Events up to this number were before it.
    after bigint NOT NULL,
    -- Consecutive failed attempts; after many of them nothing is sent until `held_until`.
    failures integer NOT NULL DEFAULT 0 CHECK (failures >= 0),
    held_until timestamptz,
    last_error text,
    taken_at timestamptz,
    delivered_at timestamptz,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_id, id),
    CHECK ((request IS NULL) = (name IS NULL) AND (request IS NULL) = (context_id IS NULL)),
    CHECK ((state = 'paused') = (paused_because IS NOT NULL)),
    CHECK (held_until IS NULL OR failures > 0)
) WITH (fillfactor = 70);
CREATE INDEX webhooks_of_agent ON webhooks (owner_id, agent_id, created_at);
CREATE UNIQUE INDEX webhooks_of_call ON webhooks (owner_id, agent_id, request, name) WHERE request IS NOT NULL;
ALTER TABLE webhooks ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON webhooks
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON webhooks TO rcrt_app;

-- The key that signs an agent's deliveries, encrypted as the values of secrets are. For a webhook
-- of one call: its header fields, as JSON.
CREATE TABLE webhook_secrets (
    owner_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- Or the webhook of a call.
    agent_id uuid NOT NULL,
    version bigint NOT NULL CHECK (version >= 1),
    key_id text NOT NULL,
    wrapped_key bytea NOT NULL,
    sealed_value bytea NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_id, agent_id)
);
ALTER TABLE webhook_secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON webhook_secrets
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON webhook_secrets TO rcrt_app;

CREATE TABLE deliveries (
    owner_id uuid NOT NULL,
    -- Derived from the webhook and the event: an event that is queued again after a crash has the
    -- same.
    id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    event bigint NOT NULL,
    -- The record version that it is about: the agent's right is checked again before it is sent.
    breadcrumb_id uuid NOT NULL,
    version bigint NOT NULL,
    -- What is posted, to the byte.
    payload json NOT NULL,
    size_bytes bigint NOT NULL,
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'sending', 'dead')),
    attempts integer NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    due_at timestamptz NOT NULL DEFAULT now(),
    -- The fencing token of the sender's lease (a time in microseconds).
    fence bigint NOT NULL DEFAULT 0,
    lease_until timestamptz,
    last_error text,
    -- For its age. A retry of a dead one counts from then.
    queued_at timestamptz NOT NULL DEFAULT now(),
    dead_at timestamptz,
    PRIMARY KEY (owner_id, id),
    UNIQUE (owner_id, webhook_id, event),
    FOREIGN KEY (owner_id, webhook_id) REFERENCES webhooks ON DELETE CASCADE,
    CHECK ((state = 'sending') = (lease_until IS NOT NULL)),
    CHECK (state <> 'sending' OR attempts > 0),
    CHECK ((state = 'dead') = (dead_at IS NOT NULL)),
    CHECK (state <> 'dead' OR last_error IS NOT NULL)
) WITH (fillfactor = 70);
CREATE INDEX deliveries_waiting ON deliveries (owner_id, webhook_id, event)
    WHERE state = 'waiting';
CREATE INDEX deliveries_sending ON deliveries (owner_id, webhook_id) WHERE state = 'sending';
CREATE INDEX deliveries_dead ON deliveries (owner_id, dead_at DESC, id) WHERE state = 'dead';

-- Deliveries hold copies of records: only the store's own work reads and writes them.
ALTER TABLE deliveries ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON deliveries
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND current_setting('rcrt.agent', true) = '*');
GRANT SELECT, INSERT, UPDATE, DELETE ON deliveries TO rcrt_app;

-- The webhooks of all tenants to which something can be sent now, the longest waiting first. One
-- with `slow_from` consecutive failures gets one delivery at a time.
CREATE FUNCTION webhooks_due(most bigint, each integer, slow_from integer) RETURNS TABLE (tenant uuid, webhook uuid)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT w.owner_id, w.id FROM webhooks w
    WHERE w.state = 'active' AND (w.held_until IS NULL OR w.held_until <= clock_timestamp())
      AND (EXISTS (SELECT FROM deliveries d WHERE d.owner_id = w.owner_id AND d.webhook_id = w.id
                   AND d.state = 'waiting' AND d.due_at <= clock_timestamp())
           OR EXISTS (SELECT FROM deliveries d WHERE d.owner_id = w.owner_id AND d.webhook_id = w.id
                      AND d.state = 'sending' AND d.lease_until <= clock_timestamp()))
      AND (SELECT count(*) FROM deliveries d WHERE d.owner_id = w.owner_id AND d.webhook_id = w.id
           AND d.state = 'sending' AND d.lease_until > clock_timestamp())
          < CASE WHEN w.failures >= slow_from THEN 1 ELSE each END
      AND NOT EXISTS (SELECT FROM agents a WHERE a.id = w.agent_id AND a.deleted_at IS NOT NULL)
    ORDER BY w.taken_at NULLS FIRST, w.id
    LIMIT most
$$;

-- The tenants where something waited too long, or where dead deliveries are too old or too many.
CREATE FUNCTION tenants_with_old_deliveries(queued_before timestamptz, dead_before timestamptz, most_dead bigint)
RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT d.owner_id FROM deliveries d GROUP BY d.owner_id
    HAVING bool_or(d.queued_at < queued_before
            AND (d.state = 'waiting' OR (d.state = 'sending' AND d.lease_until <= clock_timestamp()))) OR bool_or(d.dead_at < dead_before)
        OR count(*) FILTER (WHERE d.state = 'dead') > most_dead
$$;

-- The tenants with webhooks of calls that ended before this time, or do not exist any more.
CREATE FUNCTION tenants_with_webhooks_of_ended_calls(ended_before timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT w.owner_id FROM webhooks w
    WHERE w.request IS NOT NULL AND w.created_at < ended_before
        AND NOT EXISTS (SELECT FROM calls c WHERE c.owner_id = w.owner_id AND c.request = w.request
            AND (c.finished_at IS NULL OR c.finished_at >= ended_before))
$$;

REVOKE ALL ON FUNCTION webhooks_due(bigint, integer, integer),
    tenants_with_old_deliveries(timestamptz, timestamptz, bigint),
    tenants_with_webhooks_of_ended_calls(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION webhooks_due(bigint, integer, integer),
    tenants_with_old_deliveries(timestamptz, timestamptz, bigint),
    tenants_with_webhooks_of_ended_calls(timestamptz) TO rcrt_app;
