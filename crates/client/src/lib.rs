//! Breadcrumbs over HTTP.
