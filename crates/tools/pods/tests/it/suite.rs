//! The tools do in pods what they do in jails.

rcrt_test_programs::suite!(crate::fixture::programs);
