-- Each old version is seen by its own visibility and sensitivity: opening a record opens none of its past. A version from
-- before these were kept counts as private. Who created the record and who holds a grant see all of its versions.
ALTER POLICY tenant ON breadcrumb_versions
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND (current_setting('rcrt.agent', true) = '*'
            OR (sees_record(breadcrumb_id)
                AND CASE
                    WHEN coalesce(current_setting('rcrt.guest', true), '') <> '' THEN acl_admits(breadcrumb_id)
                    WHEN visibility <> 'private' AND sensitivity <> 'secret' THEN true
                    ELSE EXISTS (SELECT FROM breadcrumbs b WHERE b.id = breadcrumb_id
                            AND b.created_by::text = current_setting('rcrt.agent', true))
                        OR acl_admits(breadcrumb_id)
                END)))
    WITH CHECK (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);

-- A row about one record is seen by who sees that record. Work of the store itself ('*') skips the look, so the plans of
-- writers, queue and feed stay as they are.
ALTER POLICY tenant ON breadcrumb_tags
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND (current_setting('rcrt.agent', true) = '*' OR EXISTS (SELECT FROM breadcrumbs b WHERE b.id = breadcrumb_id)))
    WITH CHECK (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);

ALTER POLICY tenant ON breadcrumb_embeddings
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND (current_setting('rcrt.agent', true) = '*' OR EXISTS (SELECT FROM breadcrumbs b WHERE b.id = breadcrumb_id)))
    WITH CHECK (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);

-- Deliveries hold copies of records. These two are read and written by the store's own work alone.
ALTER POLICY tenant ON deliveries
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND current_setting('rcrt.agent', true) = '*');
ALTER POLICY tenant ON embedding_queue
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid
        AND current_setting('rcrt.agent', true) = '*');
