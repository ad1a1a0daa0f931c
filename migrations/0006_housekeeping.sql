-- Which tenants have something to tidy up. The work itself is done in each tenant's own transaction, under row-level
-- security like everything else; only these names cross it.

CREATE FUNCTION tenants_with_ended_leases() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM calls WHERE state IN ('claimed', 'running') AND lease_until <= now()
$$;

CREATE FUNCTION tenants_with_ended_records() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM breadcrumbs WHERE ttl <= now()
$$;

CREATE FUNCTION tenants_with_old_events(before timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM events WHERE at < before
$$;

CREATE FUNCTION tenants_with_old_keys(before timestamptz) RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT DISTINCT owner_id FROM idempotency_keys WHERE created_at < before
$$;

REVOKE ALL ON FUNCTION tenants_with_ended_leases(), tenants_with_ended_records(),
    tenants_with_old_events(timestamptz), tenants_with_old_keys(timestamptz) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tenants_with_ended_leases(), tenants_with_ended_records(),
    tenants_with_old_events(timestamptz), tenants_with_old_keys(timestamptz) TO rcrt_app;
