//! The store against a real Postgres.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout)]

mod archives;
mod audit;
mod call_stats;
mod calls;
mod context_reads;
mod drafts;
mod egress_log;
mod events;
mod expiry;
mod failure;
mod harness;
mod isolation;
mod keys;
mod matching;
mod migrating;
mod migration_rules;
mod opening;
mod purge;
mod queue_limit;
mod quotas;
mod retention;
mod schema;
mod secrets;
mod selector_sql;
mod semantic_search;
mod tenancy;
mod tokens;
mod tool_quotas;
mod transfer;
mod word_search;
mod writes_of_dispatchers;
mod writing;

mod conformance {
    ::rcrt_conformance::suite!(crate::harness::StoreHarness::start);
}
