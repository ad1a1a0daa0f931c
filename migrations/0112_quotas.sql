-- How much a tenant may keep. NULL: as much as the operator lets every tenant; 0: without a bound.
ALTER TABLE tenants
    ADD COLUMN max_records bigint,
    ADD COLUMN max_bytes bigint;
ALTER TABLE tenants ADD CONSTRAINT tenants_quotas CHECK (max_records >= 0 AND max_bytes >= 0) NOT VALID;

CREATE FUNCTION tenant_quotas(tenant uuid) RETURNS TABLE (max_records bigint, max_bytes bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT t.max_records, t.max_bytes FROM tenants t WHERE t.id = tenant AND t.deleted_at IS NULL $$;

-- Whether the tenant is there.
CREATE FUNCTION set_tenant_quotas(tenant uuid, records bigint, bytes bigint) RETURNS boolean
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    WITH done AS (
        UPDATE tenants t SET max_records = records, max_bytes = bytes
        WHERE t.id = tenant AND t.deleted_at IS NULL RETURNING t.id)
    SELECT EXISTS (SELECT FROM done)
$$;

REVOKE ALL ON FUNCTION tenant_quotas(uuid), set_tenant_quotas(uuid, bigint, bigint) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenant_quotas(uuid), set_tenant_quotas(uuid, bigint, bigint) TO rcrt_app;
