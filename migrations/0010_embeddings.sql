-- Embeddings of records, for search by meaning.
--
-- No writer does any of this: a follower of the events puts changed records into
-- `embedding_queue`, and a worker embeds them in small batches. A new model, a new tenant and
-- missed events start a backfill, which queues a tenant's records step by step, newest first.

-- The models that were ever used. Embeddings of two models are never compared.
CREATE TABLE embedding_models (
    id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 200),
    dimensions integer NOT NULL CHECK (dimensions BETWEEN 1 AND 16000),
    -- Records are embedded with this one now.
    is_current boolean NOT NULL DEFAULT false,
    -- Its index on `breadcrumb_embeddings` exists and is valid.
    is_indexed boolean NOT NULL DEFAULT false
);
CREATE UNIQUE INDEX embedding_models_current ON embedding_models (is_current) WHERE is_current;
-- Of no tenant. Changed by `use_embedding_model` and by the builder of the index.
ALTER TABLE embedding_models ENABLE ROW LEVEL SECURITY;
CREATE POLICY readable ON embedding_models FOR SELECT USING (true);
GRANT SELECT ON embedding_models TO rcrt_app;

CREATE TABLE breadcrumb_embeddings (
    owner_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    -- No foreign key, which every deletion would check. Searches join with the present records.
    breadcrumb_id uuid NOT NULL,
    model integer NOT NULL REFERENCES embedding_models,
    -- SHA-256 of the embedded text: the same text is not embedded again.
    checksum bytea NOT NULL,
    -- Of length 1, with the model's number of dimensions.
    embedding vector NOT NULL,
    PRIMARY KEY (owner_id, breadcrumb_id, model)
);
-- Vectors do not compress.
ALTER TABLE breadcrumb_embeddings ALTER COLUMN embedding SET STORAGE EXTERNAL;

ALTER TABLE breadcrumb_embeddings ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON breadcrumb_embeddings
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND (current_setting('rcrt.agent', true) = '*'
            OR EXISTS (SELECT FROM breadcrumbs b
                WHERE b.owner_id = breadcrumb_embeddings.owner_id AND b.id = breadcrumb_id)))
    WITH CHECK (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON breadcrumb_embeddings TO rcrt_app;

-- The records whose text may have changed.
CREATE TABLE embedding_queue (
    owner_id uuid NOT NULL REFERENCES tenants ON DELETE CASCADE,
    breadcrumb_id uuid NOT NULL,
    -- Grows with each event: a worker that embedded an older state leaves the row in the queue.
    change bigint NOT NULL DEFAULT 1,
    -- The worker that takes it moves this ahead, so that no other takes it meanwhile.
    not_before timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (owner_id, breadcrumb_id)
) WITH (fillfactor = 70);
CREATE INDEX embedding_queue_next ON embedding_queue (owner_id, not_before);

-- For the store's own work alone.
ALTER TABLE embedding_queue ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON embedding_queue
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND current_setting('rcrt.agent', true) = '*');
GRANT SELECT, INSERT, UPDATE, DELETE ON embedding_queue TO rcrt_app;

-- How far each tenant's records have been queued for the current model.
CREATE TABLE embedding_backfills (
    owner_id uuid PRIMARY KEY REFERENCES tenants ON DELETE CASCADE,
    model integer NOT NULL REFERENCES embedding_models,
    -- The record that was queued last; NULL before the first.
    at timestamptz,
    breadcrumb_id uuid,
    is_done boolean NOT NULL DEFAULT false
) WITH (fillfactor = 70);
ALTER TABLE embedding_backfills ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON embedding_backfills
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON embedding_backfills TO rcrt_app;

-- Makes this the current model, and starts a backfill in every tenant if it was another one.
CREATE FUNCTION use_embedding_model(wanted text, numbers integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    found embedding_models;
BEGIN
    -- One process at a time.
    PERFORM pg_advisory_xact_lock(hashtext('use_embedding_model'));
    SELECT * INTO found FROM embedding_models m WHERE m.name = wanted;
    IF found.id IS NULL THEN
        INSERT INTO embedding_models (name, dimensions) VALUES (wanted, numbers) RETURNING * INTO found;
    END IF;
    IF found.dimensions <> numbers THEN
        RAISE EXCEPTION 'the model % had % dimensions', wanted, found.dimensions;
    END IF;
    IF NOT found.is_current THEN
        UPDATE embedding_models SET is_current = false WHERE is_current;
        UPDATE embedding_models SET is_current = true WHERE id = found.id;
        INSERT INTO embedding_backfills (owner_id, model) SELECT t.id, found.id FROM tenants t
        WHERE NOT EXISTS (SELECT FROM fenced_tenants f WHERE f.tenant = t.id)
        ON CONFLICT (owner_id) DO UPDATE SET model = found.id, at = NULL, breadcrumb_id = NULL, is_done = false;
    END IF;
    RETURN found.id;
END
$$;

-- The tenants with records to embed now, or with an unfinished backfill.
CREATE FUNCTION tenants_to_embed() RETURNS SETOF uuid
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT t.id FROM tenants t
    WHERE EXISTS (SELECT FROM embedding_queue q WHERE q.owner_id = t.id AND q.not_before <= now())
        OR EXISTS (SELECT FROM embedding_backfills w WHERE w.owner_id = t.id AND NOT w.is_done)
$$;

-- Over all tenants: waiting records, unfinished backfills, and embeddings of this model (counted
-- up to `most`).
CREATE FUNCTION embedding_state(wanted integer, most integer) RETURNS TABLE (waiting bigint, walked bigint, embedded bigint)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
    SELECT (SELECT count(*) FROM (SELECT FROM embedding_queue LIMIT 100000) q),
        (SELECT count(*) FROM embedding_backfills WHERE NOT is_done),
        (SELECT count(*) FROM (SELECT FROM breadcrumb_embeddings e WHERE e.model = wanted LIMIT most) e)
$$;

-- The nearest records in the transaction's tenant with their distance (1 - cosine). SECURITY
-- DEFINER, because the distance is not leakproof and could not use an index under row-level
-- security; the caller joins with `breadcrumbs`, whose policy decides what is visible.
--
-- Up to `exact_up_to` vectors are compared one by one, which is fast and exact. Beyond that the
-- model's index is scanned iteratively until enough of its results are the tenant's and have the
-- tags.
CREATE FUNCTION nearest_breadcrumbs(
    wanted_model integer, wanted text, all_tags text[], any_tags text[], wanted_schema text, most integer, exact_up_to integer
) RETURNS TABLE (id uuid, distance double precision)
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, public, pg_temp
AS $$
DECLARE
    model embedding_models;
    tenant uuid := current_tenant();
    conditions text := 'e.owner_id = $1';
    -- The type that the index has.
    kind text;
    there bigint;
    ids uuid[];
    distances double precision[];
BEGIN
    SELECT * INTO model FROM embedding_models m WHERE m.id = wanted_model;
    IF model.id IS NULL OR tenant IS NULL THEN
        RETURN;
    END IF;
    -- A literal, because the index is partial: of this model alone.
    conditions := conditions || format(' AND e.model = %s', model.id);
    FOR tag_number IN 1 .. cardinality(all_tags) LOOP
        conditions := conditions || format(' AND EXISTS (SELECT FROM breadcrumb_tags t
            WHERE t.owner_id = $1 AND t.breadcrumb_id = e.breadcrumb_id AND t.tag = ($3)[%s])', tag_number);
    END LOOP;
    IF cardinality(any_tags) > 0 THEN
        conditions := conditions || ' AND EXISTS (SELECT FROM breadcrumb_tags t
            WHERE t.owner_id = $1 AND t.breadcrumb_id = e.breadcrumb_id AND t.tag = ANY ($4))';
    END IF;
    IF wanted_schema IS NOT NULL THEN
        conditions := conditions || ' AND EXISTS (SELECT FROM breadcrumbs b
            WHERE b.id = e.breadcrumb_id AND b.owner_id = $1 AND b.schema_name = $5)';
    END IF;
    IF model.is_indexed THEN
        EXECUTE format('SELECT count(*) FROM (SELECT FROM breadcrumb_embeddings e WHERE %s LIMIT %s) c', conditions, exact_up_to + 1)
        INTO there USING tenant, wanted, all_tags, any_tags, wanted_schema;
    END IF;
    IF there > exact_up_to THEN
        kind := format(CASE WHEN model.dimensions <= 2000 THEN 'vector(%s)' ELSE 'halfvec(%s)' END, model.dimensions);
        PERFORM set_config('hnsw.iterative_scan', 'strict_order', true),
            set_config('hnsw.ef_search', greatest(100, least(most, 1000))::text, true),
            set_config('hnsw.max_scan_tuples', '200000', true),
            set_config('hnsw.scan_mem_multiplier', '8', true),
            -- Otherwise the planner could choose to sort everything.
            set_config('enable_sort', 'off', true), set_config('enable_seqscan', 'off', true);
        EXECUTE format(
            'SELECT array_agg(n.id), array_agg(n.distance) FROM (
                SELECT e.breadcrumb_id AS id, (e.embedding::%1$s <=> $2::%1$s)::double precision AS distance
                FROM breadcrumb_embeddings e WHERE %2$s ORDER BY e.embedding::%1$s <=> $2::%1$s LIMIT %3$s) n',
            kind, conditions, most)
        INTO ids, distances USING tenant, wanted, all_tags, any_tags, wanted_schema;
        PERFORM set_config('enable_sort', 'on', true), set_config('enable_seqscan', 'on', true);
        -- With fewer the scan ended before it had reached all matches.
        IF cardinality(ids) >= least(most, there) THEN
            RETURN QUERY SELECT * FROM unnest(ids, distances);
            RETURN;
        END IF;
    END IF;
    RETURN QUERY EXECUTE format(
        'SELECT e.breadcrumb_id, e.embedding <=> $2::vector FROM breadcrumb_embeddings e WHERE %s ORDER BY 2 LIMIT %s',
        conditions, most)
    USING tenant, wanted, all_tags, any_tags, wanted_schema;
END
$$;

REVOKE ALL ON FUNCTION use_embedding_model(text, integer), tenants_to_embed(),
    embedding_state(integer, integer),
    nearest_breadcrumbs(integer, text, text[], text[], text, integer, integer) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION use_embedding_model(text, integer), tenants_to_embed(),
    embedding_state(integer, integer),
    nearest_breadcrumbs(integer, text, text[], text[], text, integer, integer) TO rcrt_app;
