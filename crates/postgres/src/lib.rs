//! Private Postgres.
