//! What every implementation of [`breadcrumb::Breadcrumbs`] must do, one async function per behaviour, so that the
//! Postgres store and the HTTP client are held to the very same list.
//!
//! An implementation gives a [`Harness`] and calls [`suite!`] in a test module. This crate deliberately knows no
//! database and no transport: a test goes through the trait alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]

pub mod calls;
pub mod events;
pub mod harness;
pub mod listing;
pub mod records;
pub mod secrets;

pub use harness::{Agent, Harness};

/// Expands to one `#[tokio::test]` per behaviour. The argument is the path of an async function without parameters
/// that gives a fresh [`Harness`]:
///
/// ```ignore
/// mod conformance { ::conformance::suite!(crate::harness::start); }
/// ```
#[macro_export]
macro_rules! suite {
    ($start:path) => {
        $crate::tests! { $start;
            records: [
                a_record_comes_back_as_it_was_written,
            ],
        }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! tests {
    ($start:path; $($module:ident: [$($test:ident,)*],)*) => {
        $(mod $module {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                let harness = $start().await;
                $crate::$module::$test(&harness).await;
                $crate::Harness::close(harness).await;
            })*
        })*
    };
}
