-- What the purging of ended records came to, in a row for each tenant that ever had some.
CREATE TABLE hygiene (
    owner_id uuid PRIMARY KEY,
    runs bigint NOT NULL,
    purged bigint NOT NULL,
    last_run_at timestamptz NOT NULL,
    last_run_ms bigint NOT NULL,
    last_run_purged bigint NOT NULL,
    last_run_errors integer NOT NULL
);

ALTER TABLE hygiene ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON hygiene USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE ON hygiene TO rcrt_app;
