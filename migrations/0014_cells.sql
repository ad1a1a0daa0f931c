-- Cells: several databases, each with some of the tenants. The first one, `home`, has the directory
-- and a row of `tenants` for every tenant. Without cells these tables are empty, and there are no
-- triggers: a single database pays nothing.

-- The directory, in `home`. Tenants that it does not name are in `home`.
CREATE TABLE cells (
    name text PRIMARY KEY CHECK (name ~ '^[a-z0-9][a-z0-9_-]{0,62}$' AND name <> 'home'),
    -- Without a password.
    url text NOT NULL UNIQUE,
    added_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE tenant_cells (
    tenant uuid PRIMARY KEY,
    -- Where the tenant is.
    cell text NOT NULL,
    -- Where its rows are being copied to.
    moving_to text CHECK (moving_to <> cell),
    -- Where what it left is still to be deleted.
    moved_from text CHECK (moved_from <> cell),
    -- Grows with every change of the directory, so that servers read only what is new.
    version bigint NOT NULL UNIQUE,
    CHECK (moving_to IS NULL OR moved_from IS NULL)
);

-- In each other cell: its name, and the directory that it belongs to.
CREATE TABLE cell_identity (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    name text NOT NULL,
    home uuid NOT NULL
);
-- In `home`: what names it, and the cell in which new tenants begin.
CREATE TABLE cell_home (
    is_only boolean PRIMARY KEY DEFAULT true CHECK (is_only),
    id uuid NOT NULL DEFAULT gen_random_uuid(),
    new_tenants text NOT NULL DEFAULT 'home'
);

-- The tenants that nobody writes here: they are in another cell, or on the way.
CREATE TABLE fenced_tenants (tenant uuid PRIMARY KEY);

-- Of no tenant, so only the owner of the tables and the functions below use them.
ALTER TABLE cells ENABLE ROW LEVEL SECURITY;
ALTER TABLE tenant_cells ENABLE ROW LEVEL SECURITY;
ALTER TABLE cell_identity ENABLE ROW LEVEL SECURITY;
ALTER TABLE cell_home ENABLE ROW LEVEL SECURITY;
ALTER TABLE fenced_tenants ENABLE ROW LEVEL SECURITY;

-- What `rcrt doctor` shows: the tenants whose move to another cell has not ended, and the cell in
-- which it ends.
CREATE FUNCTION unfinished_moves() RETURNS TABLE (tenant uuid, name text, moves_to text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT t.id, t.name, coalesce(c.moving_to, c.cell) FROM tenant_cells c JOIN tenants t ON t.id = c.tenant
    WHERE t.deleted_at IS NULL AND (c.moving_to IS NOT NULL OR c.moved_from IS NOT NULL) ORDER BY t.name
$$;
REVOKE ALL ON FUNCTION unfinished_moves() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION unfinished_moves() TO rcrt_app;

-- Refuses the writes of a fenced tenant. The shared lock lasts as long as the transaction, so
-- `fence_tenant` can wait for those that were not refused.
CREATE FUNCTION refuse_fenced_tenant() RETURNS trigger
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
BEGIN
    IF current_tenant() IS NOT NULL THEN
        PERFORM pg_advisory_xact_lock_shared(hashtextextended('rcrt.cells ' || current_tenant(), 0));
        IF EXISTS (SELECT FROM fenced_tenants f WHERE f.tenant = current_tenant()) THEN
            RAISE EXCEPTION 'the tenant % moves to another cell', current_tenant() USING ERRCODE = 'RC001';
        END IF;
    END IF;
    RETURN NULL;
END
$$;
REVOKE ALL ON FUNCTION refuse_fenced_tenant() FROM PUBLIC;

-- Gives each table of tenants that trigger, if it has none. Returns how many got it.
CREATE FUNCTION guard_tenant_tables() RETURNS integer
LANGUAGE plpgsql VOLATILE SET lock_timeout = '2s'
AS $$
DECLARE
    guarded record;
    made integer := 0;
BEGIN
    FOR guarded IN
        SELECT c.relname FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'owner_id' AND NOT a.attisdropped
        WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
            AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'fenced_tenants')
    LOOP
        EXECUTE format('CREATE TRIGGER fenced_tenants BEFORE INSERT OR UPDATE OR DELETE ON public.%I
            FOR EACH STATEMENT EXECUTE FUNCTION public.refuse_fenced_tenant()', guarded.relname);
        made := made + 1;
    END LOOP;
    RETURN made;
END
$$;
REVOKE ALL ON FUNCTION guard_tenant_tables() FROM PUBLIC;

-- Makes the numbers of events continue above this one, while servers write. Returns whether that
-- needed a change.
--
-- The new base holds for this transaction and later ones. So the numbers of transactions that run
-- meanwhile stay as they are, and a reader with an older snapshot computes the old horizon. A
-- writer that waits for the lock plans again afterwards, with the new function.
CREATE FUNCTION raise_event_numbers(above bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET lock_timeout = '2s'
AS $$
DECLARE
    own bigint := pg_current_xact_id()::text::bigint;
    steps text;
BEGIN
    IF event_number(0) > above THEN
        RETURN false;
    END IF;
    LOCK TABLE events, shared_events IN SHARE ROW EXCLUSIVE MODE;
    IF event_number(0) > above THEN
        RETURN false;
    END IF;
    INSERT INTO event_bases VALUES (own, (above >> 12) + 1 - own);
    SELECT string_agg(format('WHEN transaction >= %s THEN %s', b.from_transaction, b.base), ' '
        ORDER BY b.from_transaction DESC) INTO steps FROM event_bases b;
    EXECUTE format('CREATE OR REPLACE FUNCTION public.event_base(transaction bigint) RETURNS bigint
        LANGUAGE sql STABLE PARALLEL SAFE RETURN CASE %s ELSE %s::bigint END', steps,
        (SELECT event_base(min(b.from_transaction) - 1) FROM event_bases b));
    RETURN true;
END
$$;
REVOKE ALL ON FUNCTION raise_event_numbers(bigint) FROM PUBLIC;
