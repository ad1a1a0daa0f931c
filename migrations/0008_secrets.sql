-- Secrets: each value is encrypted with a data key of its own, the data key with the
-- key-encryption key, which is not in the database.
CREATE TABLE secrets (
    owner_id uuid NOT NULL REFERENCES tenants,
    id uuid NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL CHECK (version >= 1),
    -- Names the key-encryption key without revealing it.
    key_id text NOT NULL,
    -- nonce, ciphertext and tag of AES-256-GCM, in this order.
    wrapped_key bytea NOT NULL,
    sealed_value bytea NOT NULL,
    created_at timestamptz NOT NULL,
    updated_at timestamptz NOT NULL,
    -- The hosts that the value may be sent to.
    hosts text[] NOT NULL DEFAULT '{}' CHECK (
        cardinality(hosts) <= 50 AND array_position(hosts, NULL) IS NULL
        AND array_position(hosts, '') IS NULL),
    -- Whether tools get the value itself, and not only a placeholder.
    readable boolean NOT NULL DEFAULT false,
    -- What RCRT's clients say a secret is for. Labels without effect.
    scope_type text,
    scope_id uuid,
    PRIMARY KEY (owner_id, id),
    UNIQUE (owner_id, name),
    -- 8 bytes, and 28 of nonce and tag. A shorter value could be guessed from tools' output.
    CONSTRAINT secrets_opaque_length CHECK (readable OR octet_length(sealed_value) >= 36)
);
ALTER TABLE secrets ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON secrets
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, UPDATE, DELETE ON secrets TO rcrt_app;

-- A secret given to a tool's record. It ends with either of them: another record that takes the
-- tool's name gets nothing.
CREATE TABLE secret_grants (
    owner_id uuid NOT NULL,
    secret_id uuid NOT NULL,
    tool_id uuid NOT NULL,
    -- The record's version at the grant: older versions were not reviewed.
    tool_version bigint NOT NULL CHECK (tool_version >= 1),
    granted_at timestamptz NOT NULL,
    granted_by uuid NOT NULL,
    PRIMARY KEY (owner_id, secret_id, tool_id),
    FOREIGN KEY (owner_id, secret_id) REFERENCES secrets ON DELETE CASCADE,
    FOREIGN KEY (owner_id, tool_id) REFERENCES breadcrumbs ON DELETE CASCADE
);
CREATE INDEX secret_grants_by_tool ON secret_grants (owner_id, tool_id);
ALTER TABLE secret_grants ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON secret_grants
    USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON secret_grants TO rcrt_app;
