-- Where a secret may go, whether tools may read it, and which tools may use it.
--
-- Secrets from before are bound to no host, not readable, and granted to no tool: what may use them is said anew.

ALTER TABLE secrets
    ADD COLUMN hosts text[] NOT NULL DEFAULT '{}',
    ADD COLUMN readable boolean NOT NULL DEFAULT false,
    ADD CONSTRAINT secrets_hosts_check CHECK (
        cardinality(hosts) <= 50 AND array_position(hosts, NULL) IS NULL AND array_position(hosts, '') IS NULL
    ),
    -- 8 bytes, and the 28 that sealing adds: nonce and tag. Not valid: older values may be shorter, and are refused
    -- when they are next changed.
    ADD CONSTRAINT secrets_opaque_length CHECK (readable OR octet_length(sealed_value) >= 36) NOT VALID,
    -- So that a grant can be held to the tenant of its secret.
    ADD CONSTRAINT secrets_owner_id_id_key UNIQUE (owner_id, id);

-- A secret given to a tool's record, which ends with either of them: a record that takes the name gets nothing.
CREATE TABLE secret_grants (
    owner_id uuid NOT NULL,
    secret_id uuid NOT NULL,
    tool_id uuid NOT NULL REFERENCES breadcrumbs ON DELETE CASCADE,
    -- The record's version at the grant. Who gave it has not seen what an older version does.
    tool_version bigint NOT NULL CHECK (tool_version >= 1),
    granted_at timestamptz NOT NULL,
    granted_by uuid NOT NULL,
    PRIMARY KEY (secret_id, tool_id),
    FOREIGN KEY (owner_id, secret_id) REFERENCES secrets (owner_id, id) ON DELETE CASCADE
);
CREATE INDEX secret_grants_by_tool ON secret_grants (tool_id);

ALTER TABLE secret_grants ENABLE ROW LEVEL SECURITY;
CREATE POLICY tenant ON secret_grants USING (owner_id = NULLIF(current_setting('rcrt.tenant', true), '')::uuid);
GRANT SELECT, INSERT, DELETE ON secret_grants TO rcrt_app;

-- The tool's record that something was done for, such as a decryption.
ALTER TABLE audit ADD COLUMN tool_id uuid;
