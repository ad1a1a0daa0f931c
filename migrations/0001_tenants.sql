-- Tenants, their agents and the audit log, and the role under which the server works.
--
-- `rcrt_app` owns no table and cannot bypass row-level security. Every transaction names its
-- tenant in the setting `rcrt.tenant`; without it no row is visible and none can be written. Only
-- functions that are SECURITY DEFINER read across tenants, and they return ids or what a grant
-- allows.
--
-- Primary keys, unique indexes and foreign keys start with the tenant, `owner_id`, so that tables
-- can be partitioned or distributed by it. Global are only `tenants`, `agents` (an id names the
-- agent also to other tenants, which grant it access), and what is of no tenant: `follower_leases`,
-- `embedding_models`, `restores`, `retention`, the ranges of events, and the tables of cells.

CREATE EXTENSION IF NOT EXISTS vector;

-- Roles belong to the whole cluster: a migration of another database may create it concurrently.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rcrt_app') THEN
        CREATE ROLE rcrt_app NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END
$$;

-- The migrating user needs SET ROLE on its own connections. A superuser has it anyway. Since
-- Postgres 16, who creates a role is a member without that right.
DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'rcrt_app',
        CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END)
    THEN
        EXECUTE format('GRANT rcrt_app TO %I', current_user);
    END IF;
END
$$;

GRANT USAGE ON SCHEMA public TO rcrt_app;

-- The tenant of the running transaction; NULL when none is set.
CREATE FUNCTION current_tenant() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN NULLIF(current_setting('rcrt.tenant', true), '')::uuid;

-- `rcrt_app` has no right on this table and uses the functions below.
CREATE TABLE tenants (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- From then on the tenant does not exist for callers. `purge_tenant` deletes its rows.
    deleted_at timestamptz,
    -- NULL: the server's default quota; 0: no quota.
    max_records bigint,
    max_bytes bigint,
    max_tools bigint,
    max_tool_bytes bigint,
    max_tool_creations bigint,
    max_requests bigint,
    -- What releases the tools that agents make.
    publish text NOT NULL DEFAULT 'examples'
        CONSTRAINT tenants_publish CHECK (publish IN ('examples', 'curator', 'anyone')),
    CONSTRAINT tenants_quotas CHECK (max_records >= 0 AND max_bytes >= 0 AND max_tools >= 0
        AND max_tool_bytes >= 0 AND max_tool_creations >= 0 AND max_requests >= 0)
);

CREATE FUNCTION ensure_tenant(new_id uuid, wanted text) RETURNS SETOF tenants
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
BEGIN
    INSERT INTO tenants (id, name) VALUES (new_id, wanted) ON CONFLICT (name) DO NOTHING;
    RETURN QUERY SELECT * FROM tenants WHERE name = wanted AND deleted_at IS NULL;
END
$$;

CREATE FUNCTION all_tenants() RETURNS SETOF tenants
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT * FROM tenants WHERE deleted_at IS NULL ORDER BY name $$;

CREATE FUNCTION find_tenant(tenant uuid) RETURNS SETOF tenants
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT * FROM tenants WHERE id = tenant AND deleted_at IS NULL $$;

CREATE FUNCTION tenant_exists(wanted uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT EXISTS (SELECT FROM tenants t WHERE t.id = wanted AND current_tenant() IS NOT NULL) $$;

CREATE FUNCTION deleted_tenants() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT id FROM tenants WHERE deleted_at IS NOT NULL $$;

CREATE FUNCTION set_tenant_publish(tenant uuid, wanted text) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    WITH done AS (
        UPDATE tenants t SET publish = wanted WHERE t.id = tenant AND t.deleted_at IS NULL RETURNING t.id)
    SELECT EXISTS (SELECT FROM done)
$$;

-- Whether the tenant exists.
CREATE FUNCTION set_tenant_quotas(
    tenant uuid, records bigint, bytes bigint, tools bigint, tool_bytes bigint, tool_creations bigint,
    requests bigint)
RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    WITH done AS (
        UPDATE tenants t SET max_records = records, max_bytes = bytes, max_tools = tools,
            max_tool_bytes = tool_bytes, max_tool_creations = tool_creations, max_requests = requests
        WHERE t.id = tenant AND t.deleted_at IS NULL RETURNING t.id)
    SELECT EXISTS (SELECT FROM done)
$$;

REVOKE ALL ON FUNCTION ensure_tenant(uuid, text), all_tenants(), find_tenant(uuid),
    tenant_exists(uuid), deleted_tenants(), set_tenant_publish(uuid, text),
    set_tenant_quotas(uuid, bigint, bigint, bigint, bigint, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ensure_tenant(uuid, text), all_tenants(), find_tenant(uuid),
    tenant_exists(uuid), deleted_tenants(), set_tenant_publish(uuid, text),
    set_tenant_quotas(uuid, bigint, bigint, bigint, bigint, bigint, bigint) TO rcrt_app;

CREATE TABLE agents (
    id uuid PRIMARY KEY,
    owner_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    roles text[] NOT NULL
        CHECK (cardinality(roles) > 0 AND roles <@ '{curator,emitter,subscriber,runner,caller}'),
    -- An unknown profile would allow what another version denies.
    profile text NOT NULL DEFAULT 'main'
        CHECK (profile IN ('main', 'subagent', 'scheduled', 'a2asynthesis')),
    -- The only tools that a caller can call: {names, sources, tags}. NULL: every tool.
    tools json CHECK (json_typeof(tools) = 'object'),
    -- SHA-256 of the key. The key has 256 random bits, so it needs no slow hash.
    key_hash bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- When roles, profile or tools were changed, or the agent was deleted. Servers read those
    -- again.
    changed_at timestamptz,
    -- The row stays, so that `created_by` and the audit log still name someone.
    deleted_at timestamptz
);
CREATE UNIQUE INDEX agents_name ON agents (owner_id, name) WHERE deleted_at IS NULL;
CREATE INDEX agents_changed ON agents (changed_at) WHERE changed_at IS NOT NULL;
ALTER TABLE agents ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON agents
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE ON agents TO rcrt_app;

-- The tenant of an existing agent of any tenant: grants can name agents of other tenants.
CREATE FUNCTION tenant_of_agent(agent uuid) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT a.owner_id FROM agents a WHERE a.id = agent AND a.deleted_at IS NULL AND current_tenant() IS NOT NULL $$;
REVOKE ALL ON FUNCTION tenant_of_agent(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenant_of_agent(uuid) TO rcrt_app;

-- Written, never changed.
CREATE TABLE audit (
    owner_id uuid NOT NULL,
    id bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    -- NULL: the operator.
    agent_id uuid,
    -- The group, a dot and what happened. A filter by the group finds all of its actions.
    action text NOT NULL CHECK (action ~ '^(agent|token|acl|secret|tool|webhook|tenant)\.[a-z_]+$'),
    subject uuid NOT NULL,
    subject_name text NOT NULL,
    reason text,
    -- The tool's record that the action was for, such as a decryption.
    tool_id uuid,
    PRIMARY KEY (owner_id, id)
);
-- Reading secrets writes most entries. The others are found among them.
CREATE INDEX audit_by_action ON audit (owner_id, action COLLATE "C", id);
CREATE INDEX audit_by_subject ON audit (owner_id, subject, id);
-- How many tools an agent created within an hour.
CREATE INDEX audit_tools_created ON audit (owner_id, agent_id, at) WHERE action = 'tool.created';
ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT ON audit TO rcrt_app;

-- Creates the tenant or renames it. No row when the id is that of a deleted tenant.
CREATE FUNCTION put_tenant(tenant uuid, wanted text)
RETURNS TABLE (id uuid, name text, created_at timestamptz, publish text, is_new boolean)
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    INSERT INTO tenants AS t (id, name) SELECT tenant, wanted
    -- A deleted tenant's id is never reused: tokens of its agents would be valid again. The
    -- audit line stays when all else is deleted.
    WHERE EXISTS (SELECT FROM tenants there WHERE there.id = tenant)
        OR NOT EXISTS (SELECT FROM audit a WHERE a.owner_id = tenant AND a.action = 'tenant.deleted')
    ON CONFLICT (id) DO UPDATE SET name = EXCLUDED.name WHERE t.deleted_at IS NULL
    RETURNING t.id, t.name, t.created_at, t.publish, t.xmax = 0
$$;
REVOKE ALL ON FUNCTION put_tenant(uuid, text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION put_tenant(uuid, text) TO rcrt_app;
