//! The server over a real socket, on the real store, on a real Postgres.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod acl;
mod agents;

mod audit;
mod auth;
mod bad_input;
mod bodies;
mod breadcrumbs;
mod call_history;
mod callers;
mod calls;
mod cross_origin;
mod events;
mod exact_numbers;
mod harness;
mod hostile;
mod hygiene;
mod invoke;
mod limits;
mod model_formats;
mod openapi;
mod operations;
mod races;
mod rcrt_compat;
mod revocation;
mod roles;
mod routes;
mod secrets;
mod shutdown;
mod tenant_routes;
mod tenants;
mod tickets;
mod tokens;
mod tools;
mod webhooks;
