//! What the tools `bash` and `execute_python_script` must do wherever their programs run, one async
//! function for each behaviour. The jail and the pods pass the same suite. For tests only.
//!
//! A test crate starts the tools as [`Programs`] and calls [`suite!`] in a test module. This crate
//! deliberately does not know jails and clusters.
//!
//! Begin with `harness.rs`, then `python.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

pub mod bash;
mod harness;
pub mod python;
pub mod words;

pub use harness::{Programs, failed, limited};

/// Expands to one `#[tokio::test]` per behaviour. The argument is the path of an async function
/// without parameters that returns fresh [`Programs`], or `None` where they cannot run:
///
/// ```ignore
/// mod suite { ::rcrt_test_programs::suite!(crate::fixture::programs); }
/// ```
#[macro_export]
macro_rules! suite {
    ($start:path) => {
        $crate::tests! { $start;
            python: [
                script_output_is_returned,
                long_output_without_a_session_keeps_beginning_and_end,
                input_is_available_under_both_names,
                standard_error_explains_a_failure,
                a_script_starts_in_an_empty_folder,
                the_response_says_which_python_ran,
                threads_processes_and_local_servers_work,
                a_script_has_its_own_timeout,
                processor_time_is_bounded,
                a_long_script_runs_and_one_that_is_too_long_is_refused,
                no_other_machine_is_reached,
            ],
            bash: [
                a_command_has_two_streams_and_an_exit_code,
                pipes_loops_and_the_usual_programs_work,
                the_environment_is_clean,
                invalid_command_text_is_refused,
                output_of_a_killed_command_is_reported,
                long_output_keeps_both_streams_within_the_callers_limit,
                signals_are_reported_as_in_a_shell,
                what_runs_in_the_background_does_not_delay_the_end,
            ],
            words: [
                results_and_failures_match_the_golden_file,
                seed_examples_are_correct,
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
                if let Some(programs) = $start().await {
                    $crate::$module::$test(&programs).await;
                }
            })*
        })*
    };
}
