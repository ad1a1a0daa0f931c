//! The catalog records that this runner keeps up to date.

pub(crate) mod catalog_part;
pub(crate) mod catalog_publisher;
pub(crate) mod rcrt_catalog;
