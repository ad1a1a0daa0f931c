//! The server over a real socket, on the real store, on a real Postgres.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod acl;
mod agents;
mod auth;
mod bad_input;
mod bodies;
mod breadcrumbs;
mod calls;
mod cross_origin;
mod events;
mod harness;
mod hygiene;
mod invoke;
mod limits;
mod openapi;
mod operations;
mod races;
mod roles;
mod routes;
mod secrets;
mod shutdown;
mod tenant_routes;
mod tenants;
mod tools;
mod webhooks;
