//! The embedders through the trait: the real model, and an endpoint on loopback.
#![allow(clippy::unwrap_used)]

mod endpoint;
mod local;
