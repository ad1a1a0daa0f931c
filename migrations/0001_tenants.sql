-- Who the rows belong to, and the one role under which the server works.
--
-- `rcrt_app` owns no table and cannot bypass row-level security. Every transaction of the server names its tenant in
-- the setting `rcrt.tenant`; without it no row is seen and none can be written.

CREATE EXTENSION IF NOT EXISTS vector;

-- Roles belong to the whole cluster: another database's migration may make this one at the same moment.
DO $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'rcrt_app') THEN
        CREATE ROLE rcrt_app NOLOGIN NOSUPERUSER NOBYPASSRLS NOCREATEDB NOCREATEROLE;
    END IF;
EXCEPTION WHEN duplicate_object OR unique_violation THEN
    NULL;
END
$$;

-- So that the migrating user may take the role on its own connections. A superuser may anyway.
DO $$
BEGIN
    IF NOT pg_has_role(current_user, 'rcrt_app', 'MEMBER') THEN
        EXECUTE format('GRANT rcrt_app TO %I', current_user);
    END IF;
END
$$;

GRANT USAGE ON SCHEMA public TO rcrt_app;

-- The tenant of the running transaction; NULL when there is none.
CREATE FUNCTION current_tenant() RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE
RETURN NULLIF(current_setting('rcrt.tenant', true), '')::uuid;

CREATE TABLE tenants (
    id uuid PRIMARY KEY,
    name text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT now()
);

-- The server reads and makes tenants only through these two doors.
CREATE FUNCTION ensure_tenant(new_id uuid, wanted text) RETURNS SETOF tenants
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
BEGIN
    INSERT INTO tenants (id, name) VALUES (new_id, wanted) ON CONFLICT (name) DO NOTHING;
    RETURN QUERY SELECT * FROM tenants WHERE name = wanted;
END
$$;

CREATE FUNCTION all_tenants() RETURNS SETOF tenants
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT * FROM tenants ORDER BY name $$;

REVOKE ALL ON FUNCTION ensure_tenant(uuid, text), all_tenants() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION ensure_tenant(uuid, text), all_tenants() TO rcrt_app;

CREATE TABLE agents (
    id uuid PRIMARY KEY,
    owner_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    roles text[] NOT NULL,
    -- SHA-256 of the key. The key has 256 random bits, so a plain hash keeps it.
    key_hash bytea NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    -- Kept after its deletion, so that `created_by` and the audit log still mean somebody.
    deleted_at timestamptz
);
CREATE UNIQUE INDEX agents_name ON agents (owner_id, name) WHERE deleted_at IS NULL;

ALTER TABLE agents ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON agents USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE ON agents TO rcrt_app;

-- What was done that somebody may ask about later. Written, never changed.
CREATE TABLE audit (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner_id uuid NOT NULL,
    at timestamptz NOT NULL DEFAULT now(),
    -- NULL: the operator.
    agent_id uuid,
    action text NOT NULL,
    subject uuid NOT NULL,
    subject_name text NOT NULL,
    reason text
);
CREATE INDEX audit_by_tenant ON audit (owner_id, id);

ALTER TABLE audit ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON audit USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT ON audit TO rcrt_app;
