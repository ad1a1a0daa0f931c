-- The tag author:curator is set by the store alone, on what a curator writes. Rows from before it was reserved may carry
-- it although no curator wrote them: there it is removed, unless the row's author is a curator now. Only tools are
-- touched, found by their schema, so the statements lock a few rows and no table.
CREATE FUNCTION drop_forged_curators_tags() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    WITH forged AS (
        UPDATE breadcrumbs b SET tags = array_remove(b.tags, 'author:curator')
        FROM tenants t
        WHERE b.owner_id = t.id AND b.schema_name = 'tool.code.v1' AND 'author:curator' = ANY (b.tags)
            AND NOT EXISTS (SELECT FROM agents a WHERE a.owner_id = b.owner_id AND a.deleted_at IS NULL
                AND a.id = coalesce(b.updated_by, b.created_by) AND 'curator' = ANY (a.roles))
        RETURNING b.owner_id, b.id)
    DELETE FROM breadcrumb_tags g USING forged f
    WHERE g.owner_id = f.owner_id AND g.tag = 'author:curator' AND g.breadcrumb_id = f.id;

    UPDATE breadcrumb_versions v SET tags = array_remove(v.tags, 'author:curator')
    FROM tenants t, breadcrumbs b
    WHERE b.owner_id = t.id AND b.schema_name = 'tool.code.v1' AND v.breadcrumb_id = b.id
        AND v.schema_name = 'tool.code.v1' AND 'author:curator' = ANY (v.tags)
        AND NOT EXISTS (SELECT FROM agents a WHERE a.owner_id = v.owner_id AND a.deleted_at IS NULL
            AND a.id = v.updated_by AND 'curator' = ANY (a.roles));
END
$$;
SELECT drop_forged_curators_tags();
DROP FUNCTION drop_forged_curators_tags();
