-- Tokens that were issued or used, tokens that were revoked, one-time tickets that were used, and
-- the sessions of MCP clients. All are kept until they expire.

-- Never the token itself. A token that was not issued over HTTP is listed from its first use.
CREATE TABLE tokens (
    owner_id uuid NOT NULL,
    id uuid NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    -- No foreign key: a server with open auth gives tokens to agents that are in no table.
    agent_id uuid NOT NULL,
    roles text[] NOT NULL CHECK (roles <@ '{curator,emitter,subscriber,runner,caller}'),
    profile text NOT NULL CHECK (profile IN ('main', 'subagent', 'scheduled', 'a2asynthesis')),
    issued_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL,
    -- A server writes it at most once a minute for each token.
    last_used_at timestamptz,
    PRIMARY KEY (owner_id, id)
);
CREATE INDEX tokens_newest ON tokens (owner_id, number);
CREATE INDEX tokens_of_agent ON tokens (owner_id, agent_id, number);
CREATE INDEX tokens_expired ON tokens (expires_at);
ALTER TABLE tokens ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON tokens
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON tokens TO rcrt_app;

-- `jti` can be NULL, so the two unique indexes are the key.
CREATE TABLE revoked_tokens (
    owner_id uuid NOT NULL,
    -- No foreign key: a server with open auth gives tokens to agents that are in no table.
    agent_id uuid NOT NULL,
    -- One token. NULL: all that were issued before `issued_before`.
    jti uuid,
    issued_before timestamptz,
    -- NULL: kept as long as the tenant exists.
    until timestamptz,
    revoked_at timestamptz NOT NULL DEFAULT now(),
    revoked_by uuid NOT NULL,
    CHECK ((jti IS NULL) = (issued_before IS NOT NULL)),
    CHECK (jti IS NULL OR until IS NOT NULL)
);
CREATE UNIQUE INDEX revoked_tokens_one ON revoked_tokens (owner_id, agent_id, jti)
    WHERE jti IS NOT NULL;
CREATE UNIQUE INDEX revoked_tokens_all ON revoked_tokens (owner_id, agent_id) WHERE jti IS NULL;
CREATE INDEX revoked_tokens_recent ON revoked_tokens (revoked_at);
ALTER TABLE revoked_tokens ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON revoked_tokens
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON revoked_tokens TO rcrt_app;

CREATE TABLE used_tickets (
    owner_id uuid NOT NULL,
    id uuid NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (owner_id, id)
);
ALTER TABLE used_tickets ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON used_tickets
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON used_tickets TO rcrt_app;

-- Sessions of MCP clients of revisions before 2026-07-28: any server can continue one.
CREATE TABLE mcp_sessions (
    owner_id uuid NOT NULL,
    -- No foreign key: a server with open auth serves agents that are in no table.
    agent_id uuid NOT NULL,
    id text NOT NULL,
    -- What the client said when it began, and the resources that it follows.
    state json NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (owner_id, agent_id, id)
);
CREATE INDEX mcp_sessions_expired ON mcp_sessions (until);
ALTER TABLE mcp_sessions ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON mcp_sessions
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON mcp_sessions TO rcrt_app;

-- The agents of all tenants that were changed since this time, or whose tokens were revoked, and
-- when: servers read those again.
CREATE FUNCTION agents_changed_since(since timestamptz)
RETURNS TABLE (tenant uuid, agent uuid, changed_at timestamptz)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT c.owner_id, c.agent_id, max(c.at) FROM (
        SELECT r.owner_id, r.agent_id, r.revoked_at FROM revoked_tokens r WHERE r.revoked_at >= since
        UNION ALL
        SELECT a.owner_id, a.id, a.changed_at FROM agents a WHERE a.changed_at >= since
    ) AS c (owner_id, agent_id, at) GROUP BY c.owner_id, c.agent_id
$$;

CREATE FUNCTION tenants_with_expired_tokens() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT owner_id FROM revoked_tokens WHERE until < now()
    UNION SELECT owner_id FROM tokens WHERE expires_at < now()
    UNION SELECT owner_id FROM used_tickets WHERE until < now() - interval '5 minutes'
    UNION SELECT owner_id FROM mcp_sessions WHERE until < now()
$$;

REVOKE ALL ON FUNCTION agents_changed_since(timestamptz), tenants_with_expired_tokens()
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION agents_changed_since(timestamptz), tenants_with_expired_tokens()
    TO rcrt_app;
