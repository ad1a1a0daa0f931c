//! Cells over databases of one Postgres, and over two Postgres clusters.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod directory;
mod harness;
mod meanwhile;
mod moving;
mod rights;
mod tenants;

/// Every tenant is in the second cell.
mod conformance {
    ::rcrt_conformance::suite!(crate::harness::CellsHarness::start);
}
