-- A tool is looked up by its name whenever a runner is asked for one that it has not read yet, and when tools are seeded:
-- by a column of its own, because under row-level security an expression over the context could serve no index. The name
-- of a good tool is short; a longer text is nobody's name, and would not fit into the index.
ALTER TABLE breadcrumbs ADD COLUMN tool_name text GENERATED ALWAYS AS (
    CASE WHEN schema_name IN ('tool.code.v1', 'tool.v1') AND length(context ->> 'name') <= 100
        THEN context ->> 'name' END) STORED;
CREATE INDEX breadcrumbs_by_tool_name ON breadcrumbs (owner_id, tool_name) WHERE tool_name IS NOT NULL;
