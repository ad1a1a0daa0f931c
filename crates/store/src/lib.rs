//! Breadcrumbs on Postgres.
