//! What these tools do wherever their programs run.

rcrt_test_programs::suite!(crate::fixture::programs);
