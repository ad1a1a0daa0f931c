-- Records that end by their reads.
--
-- The counts stand in a table of their own, so that a read moves no row of a record that does not count. With its last
-- read a record's time ends like any other's: all else that looks at records knows `ttl` alone.
CREATE TABLE breadcrumb_reads (
    breadcrumb_id uuid PRIMARY KEY,
    owner_id uuid NOT NULL,
    reads bigint NOT NULL CHECK (reads >= 1)
);

ALTER TABLE breadcrumb_reads ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON breadcrumb_reads USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
-- Counted by the function alone: whoever may read a record need not be one who may change it.
GRANT SELECT, DELETE ON breadcrumb_reads TO rcrt_app;

-- Counts one read of a record of the running transaction's tenant, and gives its number; NULL when none is left, 0 when
-- the record's reads do not count any more. Readers of one record count one after the other, by the record's row: so
-- does whoever changes or deletes it.
CREATE FUNCTION count_read(record uuid) RETURNS bigint
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    kind text;
    allowed bigint;
    counted bigint;
BEGIN
    SELECT b.ttl_type, (b.ttl_config ->> 'max_reads')::bigint INTO kind, allowed
    FROM breadcrumbs b
    WHERE b.id = record AND b.owner_id = current_tenant() AND (b.ttl IS NULL OR b.ttl > clock_timestamp())
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF kind IS NULL OR kind NOT IN ('usage', 'hybrid') THEN
        RETURN 0;
    END IF;
    INSERT INTO breadcrumb_reads AS r (breadcrumb_id, owner_id, reads) VALUES (record, current_tenant(), 1)
    ON CONFLICT (breadcrumb_id) DO UPDATE SET reads = r.reads + 1 WHERE r.reads < allowed
    RETURNING reads INTO counted;
    IF counted IS NULL OR counted >= allowed THEN
        UPDATE breadcrumbs SET ttl = clock_timestamp() WHERE id = record;
    END IF;
    RETURN counted;
END
$$;
REVOKE ALL ON FUNCTION count_read(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION count_read(uuid) TO rcrt_app;
