//! The records that this runner keeps up to date: the catalog, and the reports on shadows.

pub(crate) mod catalog_part;
pub(crate) mod catalog_publisher;
pub(crate) mod rcrt_catalog;
pub(crate) mod shadow_reports;
