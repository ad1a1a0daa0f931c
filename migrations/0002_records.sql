-- Breadcrumbs: the present version of each record, its older versions, and its tags.

CREATE TABLE breadcrumbs (
    id uuid PRIMARY KEY,
    owner_id uuid NOT NULL,
    title text NOT NULL,
    description text,
    semantic_version text,
    -- json and not jsonb: it comes back as it was written, key order included. Conditions on it cast to jsonb.
    context json NOT NULL,
    tags text[] NOT NULL,
    schema_name text,
    llm_hints json,
    visibility text NOT NULL CHECK (visibility IN ('public', 'team', 'private')),
    sensitivity text NOT NULL CHECK (sensitivity IN ('low', 'pii', 'secret')),
    version bigint NOT NULL CHECK (version >= 1),
    checksum text NOT NULL,
    size_bytes bigint NOT NULL,
    -- The record is gone to every reader from this moment on.
    ttl timestamptz,
    ttl_type text CHECK (ttl_type IN ('never', 'datetime', 'duration', 'usage', 'hybrid')),
    ttl_config json,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    created_by uuid,
    updated_by uuid,
    -- The words to search: title (A), description and tags (B), the first strings of the context (C).
    words tsvector NOT NULL
);
CREATE INDEX breadcrumbs_newest ON breadcrumbs (owner_id, updated_at DESC, id);
CREATE INDEX breadcrumbs_by_schema ON breadcrumbs (owner_id, schema_name, updated_at DESC, id);
CREATE INDEX breadcrumbs_ending ON breadcrumbs (ttl) WHERE ttl IS NOT NULL;
CREATE INDEX breadcrumbs_words ON breadcrumbs USING gin (words);

ALTER TABLE breadcrumbs ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON breadcrumbs USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON breadcrumbs TO rcrt_app;

-- One row per tag, and not a GIN index on the array: under row-level security an index condition must be leakproof,
-- which equality of texts is and containment of arrays is not.
CREATE TABLE breadcrumb_tags (
    owner_id uuid NOT NULL,
    tag text NOT NULL,
    breadcrumb_id uuid NOT NULL,
    PRIMARY KEY (owner_id, tag, breadcrumb_id)
);

ALTER TABLE breadcrumb_tags ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON breadcrumb_tags USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON breadcrumb_tags TO rcrt_app;

-- The versions before the present one; of a deleted record all, until its events are forgotten.
CREATE TABLE breadcrumb_versions (
    breadcrumb_id uuid NOT NULL,
    version bigint NOT NULL,
    owner_id uuid NOT NULL,
    title text NOT NULL,
    context json NOT NULL,
    tags text[] NOT NULL,
    schema_name text,
    checksum text NOT NULL,
    updated_at timestamptz NOT NULL,
    updated_by uuid,
    PRIMARY KEY (breadcrumb_id, version)
);

ALTER TABLE breadcrumb_versions ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON breadcrumb_versions USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON breadcrumb_versions TO rcrt_app;

-- What was answered to a create with an Idempotency-Key, so that a repetition gets the same.
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
CREATE POLICY tenant ON idempotency_keys USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON idempotency_keys TO rcrt_app;

-- The ranked matches in the running transaction's tenant, and only there. A function of the owner, because the match
-- operator is not leakproof and could not use the index under row-level security.
CREATE FUNCTION matching_breadcrumbs(words_wanted text) RETURNS TABLE (id uuid, rank real)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT b.id, ts_rank(b.words, q)
    FROM breadcrumbs b, websearch_to_tsquery('english', words_wanted) q
    WHERE b.owner_id = current_tenant() AND b.words @@ q
$$;
REVOKE ALL ON FUNCTION matching_breadcrumbs(text) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION matching_breadcrumbs(text) TO rcrt_app;
