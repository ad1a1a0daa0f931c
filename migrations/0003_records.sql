-- Breadcrumbs: the present version of each record, its tags, older versions, reads, and the
-- idempotency keys of creates.

CREATE TABLE breadcrumbs (
    owner_id uuid NOT NULL,
    id uuid NOT NULL,
    title text NOT NULL,
    description text,
    semantic_version text,
    -- json and not jsonb: it is returned as it was written, including the order of its keys.
    -- Conditions on it cast to jsonb.
    context json NOT NULL,
    tags text[] NOT NULL,
    schema_name text,
    llm_hints json,
    visibility text NOT NULL CHECK (visibility IN ('public', 'team', 'private')),
    sensitivity text NOT NULL CHECK (sensitivity IN ('low', 'pii', 'secret')),
    version bigint NOT NULL CHECK (version >= 1),
    checksum text NOT NULL,
    size_bytes bigint NOT NULL,
    -- From this time on no reader finds the record.
    ttl timestamptz,
    ttl_type text CHECK (ttl_type IN ('never', 'datetime', 'duration', 'usage', 'hybrid')),
    ttl_config json,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    created_by uuid,
    updated_by uuid,
    -- For full-text search: title (A), description and tags (B), first strings of the context (C).
    words tsvector NOT NULL,
    -- A column, because under row-level security no index on an expression over the context is
    -- used. No valid tool has a longer name, and it would not fit into the index.
    tool_name text GENERATED ALWAYS AS (
        CASE WHEN schema_name IN ('tool.code.v1', 'tool.v1') AND length(context ->> 'name') <= 100
            THEN context ->> 'name' END) STORED,
    PRIMARY KEY (owner_id, id)
-- The records of a small call stay in their page, without an attempt to compress them.
) WITH (toast_tuple_target = 4096);
CREATE INDEX breadcrumbs_newest ON breadcrumbs (owner_id, updated_at DESC, id);
CREATE INDEX breadcrumbs_by_schema ON breadcrumbs (owner_id, schema_name, updated_at DESC, id);
CREATE INDEX breadcrumbs_by_tool_name ON breadcrumbs (owner_id, tool_name)
    WHERE tool_name IS NOT NULL;
-- `find_shared_tenant` finds public records of other tenants by their id. Few records are public.
CREATE INDEX breadcrumbs_public ON breadcrumbs (id) WHERE visibility = 'public';
CREATE INDEX breadcrumbs_ttl ON breadcrumbs (ttl) WHERE ttl IS NOT NULL;
-- The insert that fills the pending list sorts it into the index while others wait: with the
-- default of 4 MB for a tenth of a second.
CREATE INDEX breadcrumbs_words ON breadcrumbs USING gin (words) WITH (gin_pending_list_limit = 512);

-- Whether the record is a request of the transaction's agent, or its log, progress or response; for
-- a tool that runs for that agent, also whether it was created for it. Not in SQL, because
-- `requester_of` is created later.
CREATE FUNCTION is_own_call(record uuid, schema_name text, created_by uuid) RETURNS boolean
LANGUAGE plpgsql STABLE
AS $$
BEGIN
    RETURN CASE schema_name
        WHEN 'tool.request.v1' THEN created_by::text = current_setting('rcrt.agent', true)
        -- The runner writes these on behalf of the agent that asked.
        WHEN 'tool.log.v1' THEN created_by::text = current_setting('rcrt.agent', true)
        WHEN 'tool.progress.v1' THEN created_by::text = current_setting('rcrt.agent', true)
        WHEN 'tool.response.v1' THEN requester_of(record)::text = current_setting('rcrt.agent', true)
        ELSE current_setting('rcrt.own_calls', true) = 'created'
            AND created_by::text = current_setting('rcrt.agent', true)
    END;
END
$$;
REVOKE ALL ON FUNCTION is_own_call(uuid, text, uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION is_own_call(uuid, text, uuid) TO rcrt_app;

-- Grants are checked by a function, and only for what is not open anyway, so that the plans of the
-- queue do not contain them.
ALTER TABLE breadcrumbs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON breadcrumbs
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND CASE
            WHEN current_setting('rcrt.agent', true) = '*' THEN true
            WHEN current_setting('rcrt.own_calls', true) IN ('on', 'created')
                THEN is_own_call(id, schema_name, created_by)
            WHEN coalesce(current_setting('rcrt.guest', true), '') = '' THEN visibility <> 'private'
                OR created_by::text = current_setting('rcrt.agent', true) OR grant_allows(id)
            ELSE (visibility = 'public' AND sensitivity <> 'secret' AND 'read_context' = ANY (
                    coalesce(NULLIF(current_setting('rcrt.actions', true), ''), '{}')::text[]))
                OR grant_allows(id)
        END)
    WITH CHECK (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON breadcrumbs TO rcrt_app;

-- With the caller's rights: whether the record's present version is visible.
CREATE FUNCTION can_see_record(record uuid) RETURNS boolean
LANGUAGE sql STABLE
AS $$ SELECT EXISTS (
    SELECT FROM breadcrumbs b WHERE b.owner_id = current_tenant() AND b.id = record) $$;

-- Whether the transaction's tenant has this record, visible or not.
CREATE FUNCTION record_exists(record uuid) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$ SELECT EXISTS (
    SELECT FROM breadcrumbs b WHERE b.owner_id = current_tenant() AND b.id = record) $$;

-- How many tools the transaction's tenant has, visible or not, and the bytes of their contexts.
CREATE FUNCTION count_tools() RETURNS TABLE (tools bigint, bytes bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT count(*), coalesce(sum(b.size_bytes), 0)::bigint FROM breadcrumbs b
    WHERE b.owner_id = current_tenant() AND b.schema_name IN ('tool.code.v1', 'tool.v1')
        AND (b.ttl IS NULL OR b.ttl > clock_timestamp())
$$;

-- What the runtime itself acts on (tools, requests, memory, schedules, schemas, guides, MCP
-- servers). Such records of other tenants are not in lists; they are read by id.
CREATE FUNCTION is_runtime_schema(schema_name text) RETURNS boolean
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN coalesce(schema_name ~ '^(tool|memory|schedule|schema|mcp|a2a|system\.guide)\.', false);

-- The other tenant that has this record, if an agent of the transaction's tenant is allowed one of
-- the wanted actions on it. Everyone may read the short view of a public record.
CREATE FUNCTION find_shared_tenant(record uuid, agent uuid, wanted text[]) RETURNS uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT coalesce(
        (SELECT b.owner_id FROM acl_grants g
         JOIN breadcrumbs b ON b.owner_id = g.owner_id AND b.id = g.breadcrumb_id
         WHERE g.grantee_owner_id = current_tenant() AND g.breadcrumb_id = record
            AND g.grantee_owner_id <> g.owner_id AND g.actions && wanted
            AND (g.grantee_agent_id IS NULL OR g.grantee_agent_id = agent)
            AND (b.ttl IS NULL OR b.ttl > clock_timestamp())
         LIMIT 1),
        (SELECT b.owner_id FROM breadcrumbs b
         WHERE b.id = record AND b.visibility = 'public' AND b.sensitivity <> 'secret'
            AND b.owner_id <> current_tenant() AND 'read_context' = ANY (wanted)
            AND (b.ttl IS NULL OR b.ttl > clock_timestamp())
         LIMIT 1))
$$;

-- The records of other tenants that this agent may read, for lists and searches.
CREATE FUNCTION shared_breadcrumbs(agent uuid) RETURNS SETOF breadcrumbs
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT b.* FROM breadcrumbs b
    WHERE b.owner_id <> current_tenant() AND NOT is_runtime_schema(b.schema_name)
        AND (b.owner_id, b.id) IN (
        SELECT g.owner_id, g.breadcrumb_id FROM acl_grants g
        WHERE g.grantee_owner_id = current_tenant() AND g.grantee_owner_id <> g.owner_id
            AND (g.grantee_agent_id IS NULL OR g.grantee_agent_id = agent)
            AND g.actions && '{read_context,read_full}'::text[])
$$;

-- Candidates for a search by words in the transaction's tenant: records with at least one of these
-- terms (texts of a `tsquery`) that satisfy `required`. SECURITY DEFINER, because the match
-- operator is not leakproof and under row-level security could not use the index; the caller joins
-- with `breadcrumbs`, whose policy decides what is visible.
--
-- The cost is bounded, however many records there are. Each term is looked up by itself, up to
-- 1,000 records, and the rarest are taken first, up to 5,000 records. A term of more records is
-- common. Only while there are fewer candidates than wanted, common terms are used: records that
-- have all of them, and what the 10,000 newest records have.
CREATE FUNCTION matching_breadcrumbs(
    terms text[], required text, all_tags text[], any_tags text[], wanted_schema text, exclude_runtime boolean,
    wanted integer
) RETURNS TABLE (ids uuid[], searched integer, common integer[])
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    tenant uuid := current_tenant();
    conditions text := 'b.owner_id = $1';
    satisfies text := CASE WHEN required = '' THEN '' ELSE format(' AND b.words @@ %L::tsquery', required) END;
    lookups text;
    with_all text;
    with_any text;
    more uuid[];
BEGIN
    FOR place IN 1 .. cardinality(all_tags) LOOP
        conditions := conditions || format(' AND EXISTS (SELECT FROM breadcrumb_tags t
            WHERE t.owner_id = $1 AND t.breadcrumb_id = b.id AND t.tag = ($2)[%s])', place);
    END LOOP;
    IF cardinality(any_tags) > 0 THEN
        conditions := conditions || ' AND EXISTS (SELECT FROM breadcrumb_tags t
            WHERE t.owner_id = $1 AND t.breadcrumb_id = b.id AND t.tag = ANY ($3))';
    END IF;
    IF wanted_schema IS NOT NULL THEN
        conditions := conditions || ' AND b.schema_name = $4';
    END IF;
    IF exclude_runtime THEN
        conditions := conditions || ' AND NOT is_runtime_schema(b.schema_name)';
    END IF;
    EXECUTE format('SELECT count(*) FROM (SELECT FROM breadcrumbs b WHERE %s LIMIT 10000) n', conditions)
    INTO searched USING tenant, all_tags, any_tags, wanted_schema;

    ids := '{}';
    common := '{}';
    -- Literals, so that the planner knows how common each term is.
    SELECT string_agg(format('(SELECT %s AS place, b.id FROM breadcrumbs b
        WHERE %s AND b.words @@ %L::tsquery%s LIMIT 1001)', t.place, conditions, t.term, satisfies), ' UNION ALL ')
    INTO lookups FROM unnest(terms) WITH ORDINALITY t(term, place);
    IF lookups IS NOT NULL THEN
        EXECUTE format(
            'WITH hit AS MATERIALIZED (%s),
            term AS (SELECT h.place, count(*) AS records FROM hit h GROUP BY h.place),
            rare AS (SELECT t.place FROM (
                SELECT t.place, sum(t.records) OVER (ORDER BY t.records, t.place) AS total
                FROM term t WHERE t.records <= 1000) t WHERE t.total <= 5000)
            SELECT ARRAY(SELECT DISTINCT h.id FROM hit h JOIN rare USING (place)),
                ARRAY(SELECT t.place::integer FROM term t WHERE t.records > 1000)', lookups)
        INTO ids, common USING tenant, all_tags, any_tags, wanted_schema;
    END IF;
    -- A question of exclusions alone has no terms: the newest records without those words.
    IF cardinality(ids) < wanted AND (cardinality(common) > 0 OR (lookups IS NULL AND required <> '')) THEN
        SELECT string_agg(format('(%s)', terms[place]), ' & '), string_agg(format('(%s)', terms[place]), ' | ')
        INTO with_all, with_any FROM unnest(common) place;
        EXECUTE format(
            'SELECT array_agg(c.id) FROM (
                (SELECT b.id FROM breadcrumbs b WHERE %1$s AND b.words @@ %2$L::tsquery%4$s LIMIT 1000)
                UNION
                (SELECT b.id FROM (
                    SELECT b.id, b.words FROM breadcrumbs b WHERE %1$s ORDER BY b.updated_at DESC LIMIT 10000) b
                WHERE (%3$L IS NULL OR b.words @@ %3$L::tsquery)%4$s LIMIT 1000)) c
            WHERE c.id <> ALL ($5)', conditions, with_all, with_any, satisfies)
        INTO more USING tenant, all_tags, any_tags, wanted_schema, ids;
        ids := ids || more;
    END IF;
    RETURN NEXT;
END
$$;

REVOKE ALL ON FUNCTION can_see_record(uuid), record_exists(uuid), count_tools(),
    find_shared_tenant(uuid, uuid, text[]), shared_breadcrumbs(uuid), matching_breadcrumbs(text[], text, text[], text[], text, boolean, integer)
    FROM PUBLIC;
GRANT EXECUTE ON FUNCTION can_see_record(uuid), record_exists(uuid), count_tools(),
    find_shared_tenant(uuid, uuid, text[]), shared_breadcrumbs(uuid), matching_breadcrumbs(text[], text, text[], text[], text, boolean, integer)
    TO rcrt_app;

-- A row per tag and not a GIN index on the array: under row-level security a condition must be
-- leakproof to use an index. Equality of texts is, containment of arrays is not.
CREATE TABLE breadcrumb_tags (
    owner_id uuid NOT NULL,
    tag text NOT NULL,
    breadcrumb_id uuid NOT NULL,
    PRIMARY KEY (owner_id, tag, breadcrumb_id)
);

-- Visible as the record is. The store's own work ('*') skips that check, so that the plans of
-- writers, queue and feed do not contain it.
ALTER TABLE breadcrumb_tags ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON breadcrumb_tags
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND (current_setting('rcrt.agent', true) = '*'
            OR EXISTS (SELECT FROM breadcrumbs b
                WHERE b.owner_id = breadcrumb_tags.owner_id AND b.id = breadcrumb_id)))
    WITH CHECK (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON breadcrumb_tags TO rcrt_app;

-- The versions before the present one; all versions of a deleted record, until its events are
-- pruned.
CREATE TABLE breadcrumb_versions (
    owner_id uuid NOT NULL,
    breadcrumb_id uuid NOT NULL,
    version bigint NOT NULL,
    title text NOT NULL,
    context json NOT NULL,
    tags text[] NOT NULL,
    schema_name text,
    checksum text NOT NULL,
    updated_at timestamptz NOT NULL,
    updated_by uuid,
    -- NULL in versions from an export that did not have them: treated as private.
    visibility text,
    sensitivity text,
    created_by uuid,
    replaced_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_id, breadcrumb_id, version)
);
CREATE INDEX breadcrumb_versions_age ON breadcrumb_versions USING brin (replaced_at);

-- The default method takes four times as long as everything else about a large context. Not every
-- build of Postgres has lz4: without it, large values are stored as they are.
CREATE FUNCTION choose_compression() RETURNS void
LANGUAGE plpgsql VOLATILE
AS $$
BEGIN
    ALTER TABLE breadcrumbs ALTER COLUMN context SET COMPRESSION lz4, ALTER COLUMN words SET COMPRESSION lz4;
    ALTER TABLE breadcrumb_versions ALTER COLUMN context SET COMPRESSION lz4;
    -- After a restore from a server without it.
    ALTER TABLE breadcrumbs ALTER COLUMN context SET STORAGE EXTENDED, ALTER COLUMN words SET STORAGE EXTENDED;
    ALTER TABLE breadcrumb_versions ALTER COLUMN context SET STORAGE EXTENDED;
EXCEPTION WHEN feature_not_supported THEN
    ALTER TABLE breadcrumbs ALTER COLUMN context SET STORAGE EXTERNAL, ALTER COLUMN words SET STORAGE EXTERNAL;
    ALTER TABLE breadcrumb_versions ALTER COLUMN context SET STORAGE EXTERNAL;
END
$$;
REVOKE ALL ON FUNCTION choose_compression() FROM PUBLIC;
SELECT choose_compression();

-- Each version is visible by its own visibility and sensitivity: opening a record opens none of
-- its past. The record's creator and holders of a grant see all versions.
ALTER TABLE breadcrumb_versions ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON breadcrumb_versions
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND (current_setting('rcrt.agent', true) = '*'
            OR (can_see_record(breadcrumb_id)
                AND CASE
                    WHEN coalesce(current_setting('rcrt.guest', true), '') <> ''
                        THEN grant_allows(breadcrumb_id)
                    WHEN visibility <> 'private' AND sensitivity <> 'secret' THEN true
                    ELSE EXISTS (SELECT FROM breadcrumbs b
                            WHERE b.owner_id = breadcrumb_versions.owner_id AND b.id = breadcrumb_id
                            AND b.created_by::text = current_setting('rcrt.agent', true))
                        OR grant_allows(breadcrumb_id)
                END)))
    WITH CHECK (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON breadcrumb_versions TO rcrt_app;

-- Reads of records whose time to live is a number of reads. A table of its own, so that a read
-- does not rewrite a record that has no such limit.
CREATE TABLE breadcrumb_reads (
    owner_id uuid NOT NULL,
    breadcrumb_id uuid NOT NULL,
    reads bigint NOT NULL CHECK (reads >= 1),
    PRIMARY KEY (owner_id, breadcrumb_id)
);
ALTER TABLE breadcrumb_reads ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON breadcrumb_reads
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, DELETE ON breadcrumb_reads TO rcrt_app;


-- Counts one read and returns its number; NULL when none is left, 0 when the record's reads are
-- not counted. SECURITY DEFINER, because a reader need not be allowed to change the record. The
-- lock on the record's row puts readers, writers and deletions in an order. The last read sets
-- `ttl`, so that everything else looks at `ttl` alone.
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
    WHERE b.owner_id = current_tenant() AND b.id = record AND (b.ttl IS NULL OR b.ttl > clock_timestamp())
    FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    IF kind IS NULL OR kind NOT IN ('usage', 'hybrid') THEN
        RETURN 0;
    END IF;
    INSERT INTO breadcrumb_reads AS r (owner_id, breadcrumb_id, reads)
    VALUES (current_tenant(), record, 1)
    ON CONFLICT (owner_id, breadcrumb_id) DO UPDATE SET reads = r.reads + 1 WHERE r.reads < allowed
    RETURNING reads INTO counted;
    IF counted IS NULL OR counted >= allowed THEN
        UPDATE breadcrumbs SET ttl = clock_timestamp()
        WHERE owner_id = current_tenant() AND id = record;
    END IF;
    RETURN counted;
END
$$;
REVOKE ALL ON FUNCTION count_read(uuid) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION count_read(uuid) TO rcrt_app;

-- The result of each create with an Idempotency-Key, so that a repetition gets the same.
CREATE TABLE idempotency_keys (
    owner_id uuid NOT NULL,
    agent_id uuid NOT NULL,
    key text NOT NULL,
    fingerprint text NOT NULL,
    breadcrumb_id uuid NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_id, agent_id, key)
);
CREATE INDEX idempotency_keys_age ON idempotency_keys USING brin (created_at);
ALTER TABLE idempotency_keys ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON idempotency_keys
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO rcrt_app;
