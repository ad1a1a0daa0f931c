-- no-transaction
-- So that what a tenant keeps in old versions is counted without reading those of all others.
CREATE INDEX CONCURRENTLY IF NOT EXISTS breadcrumb_versions_by_owner ON breadcrumb_versions (owner_id);
