-- Secrets, each value under a data key of its own, the data key under the key-encryption key (which is not here).

CREATE TABLE secrets (
    id uuid PRIMARY KEY,
    owner_id uuid NOT NULL REFERENCES tenants,
    name text NOT NULL,
    version bigint NOT NULL CHECK (version >= 1),
    -- Tells which key-encryption key wraps the data key, without telling the key.
    key_id text NOT NULL,
    -- nonce, ciphertext and tag of AES-256-GCM, in this order.
    wrapped_key bytea NOT NULL,
    sealed_value bytea NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    UNIQUE (owner_id, name)
);

ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON secrets USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON secrets TO rcrt_app;
