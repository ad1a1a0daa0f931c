-- Grants: records that are opened to agents and to other tenants.
--
-- Beside `rcrt.tenant` a transaction names whose rights it has:
--   rcrt.agent    `*` sees all of the tenant (curators, runners, the store's own work); otherwise
--                 an agent's id. Without it nothing private is visible.
--   rcrt.guest    the agent's own tenant, when the transaction works in another one: then only
--                 what was granted is visible.
--   rcrt.own_calls  `on`: the agent is only a caller, and sees its requests and their responses.
--                 `created`: a tool runs for such an agent, and also sees what was created for it.
--   rcrt.actions  the granted actions that open a record for this transaction, such as
--                 {read_context,read_full}.

-- For an agent, or for all agents of a tenant (then without `grantee_agent_id`). A grant stays
-- when the record is deleted, until its events are pruned; record ids are not reused.
CREATE TABLE acl_grants (
    -- The record's tenant.
    owner_id uuid NOT NULL,
    id uuid NOT NULL,
    breadcrumb_id uuid NOT NULL,
    grantee_owner_id uuid NOT NULL,
    grantee_agent_id uuid,
    actions text[] NOT NULL CHECK (cardinality(actions) > 0
        AND actions <@ ARRAY['read_context', 'read_full', 'update', 'delete', 'subscribe']),
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    created_by uuid NOT NULL,
    PRIMARY KEY (owner_id, id),
    UNIQUE NULLS NOT DISTINCT (owner_id, breadcrumb_id, grantee_owner_id, grantee_agent_id)
);
CREATE INDEX acl_grants_by_owner ON acl_grants (owner_id, created_at, id);
CREATE INDEX acl_grants_to_other_tenants ON acl_grants (grantee_owner_id, breadcrumb_id)
    WHERE grantee_owner_id <> owner_id;
ALTER TABLE acl_grants ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON acl_grants
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON acl_grants TO rcrt_app;

-- Whether a grant opens this record of the transaction's tenant to the transaction's principal.
CREATE FUNCTION grant_allows(record uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT EXISTS (
        SELECT FROM acl_grants g
        WHERE g.owner_id = current_tenant() AND g.breadcrumb_id = record
            AND g.grantee_owner_id = coalesce(NULLIF(current_setting('rcrt.guest', true), '')::uuid, g.owner_id)
            AND (g.grantee_agent_id IS NULL OR g.grantee_agent_id::text = current_setting('rcrt.agent', true))
            AND g.actions && coalesce(NULLIF(current_setting('rcrt.actions', true), ''), '{}')::text[])
$$;

-- The agents, and the tenants all of whose agents, can follow a record of the transaction's tenant
-- by a grant.
CREATE FUNCTION grant_subscribers(record uuid) RETURNS uuid[]
LANGUAGE sql STABLE
AS $$
    SELECT array_agg(coalesce(g.grantee_agent_id, g.grantee_owner_id)) FROM acl_grants g
    WHERE g.owner_id = current_tenant() AND g.breadcrumb_id = record
        AND 'subscribe' = ANY (g.actions)
$$;

-- The tenants that others have opened a record to.
CREATE FUNCTION tenants_with_shares() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT DISTINCT g.grantee_owner_id FROM acl_grants g WHERE g.grantee_owner_id <> g.owner_id $$;

REVOKE ALL ON FUNCTION grant_allows(uuid), grant_subscribers(uuid), tenants_with_shares()
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION grant_allows(uuid), grant_subscribers(uuid), tenants_with_shares()
    TO rcrt_app;
