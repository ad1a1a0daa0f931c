-- The queue: one row per tool.request.v1.

CREATE TABLE calls (
    request uuid PRIMARY KEY,
    owner_id uuid NOT NULL,
    state text NOT NULL DEFAULT 'queued' CHECK (state IN ('queued', 'claimed', 'running', 'finished')),
    -- What it takes to answer when the record is gone.
    tool text NOT NULL,
    request_id text NOT NULL,
    workspace text,
    agent_id uuid,
    -- Attempts that were started.
    attempt integer NOT NULL DEFAULT 0 CHECK (attempt >= 0),
    max_attempts integer NOT NULL DEFAULT 1 CHECK (max_attempts >= 1),
    -- Grows with every claim; only who shows the newest may act.
    fence bigint NOT NULL DEFAULT 0,
    runner_id uuid,
    lease_until timestamptz,
    -- A retry waits until then.
    run_after timestamptz,
    cancel_requested boolean NOT NULL DEFAULT false,
    queued_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    response uuid UNIQUE,
    finished_at timestamptz,

    CHECK ((state IN ('claimed', 'running')) = (lease_until IS NOT NULL)),
    CHECK ((state IN ('claimed', 'running')) = (runner_id IS NOT NULL)),
    CHECK ((state = 'finished') = (response IS NOT NULL)),
    CHECK ((state = 'finished') = (finished_at IS NOT NULL)),
    CHECK (state <> 'running' OR attempt >= 1)
);
CREATE INDEX calls_waiting ON calls (owner_id, queued_at, request) WHERE state = 'queued';
-- Without lease_until, so that a heartbeat touches no index: those under way are few.
CREATE INDEX calls_under_way ON calls (owner_id) WHERE state IN ('claimed', 'running');

ALTER TABLE calls ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON calls USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON calls TO rcrt_app;
