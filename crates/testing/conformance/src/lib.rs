//! The behaviour that every implementation of [`rcrt_breadcrumb::Breadcrumbs`] must have, one async
//! function for each. The Postgres store and the HTTP client pass the same suite. For tests only.
//!
//! An implementation provides a [`Harness`] and calls [`suite!`] in a test module. This crate
//! deliberately does not know databases or transports: a test uses only the trait.
//!
//! Begin with `harness.rs`, then `records.rs` and `calls.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]
// The assertions take results by value.
#![allow(clippy::needless_pass_by_value)]

mod busy;
pub mod call_history;
pub mod calls;
pub mod catalog;
pub mod deadlines;
pub mod events;
pub mod harness;
pub mod listing;
pub mod profiles;
pub mod records;
pub mod request_ids;
pub mod rights;
pub mod runners;
pub mod secrets;
pub mod selectors;
pub mod ttl;

pub use busy::Busy;
pub use harness::{Agent, Harness};

/// Expands to one `#[tokio::test]` per behaviour. The argument is the path of an async function
/// without parameters that returns a fresh [`Harness`]:
///
/// ```ignore
/// mod conformance { ::rcrt_conformance::suite!(crate::harness::start); }
/// ```
#[macro_export]
macro_rules! suite {
    ($start:path) => {
        $crate::tests! { $start;
            records: [
                a_record_is_read_back_unchanged,
                a_record_can_have_only_a_title,
                a_change_makes_a_new_version_and_keeps_other_fields,
                a_stale_change_is_refused_and_changes_nothing,
                old_versions_stay_readable,
                a_deleted_record_is_gone,
                an_expired_record_is_gone_at_once,
                an_expired_record_is_deleted_with_an_event,
                invalid_fields_are_refused_by_name,
                a_record_can_be_large_but_not_too_large,
                the_same_key_gets_the_first_response,
                the_same_key_under_another_trace_gets_the_first_response,
                the_same_key_at_the_same_time_makes_one_record,
                another_tenant_sees_nothing,
                one_of_many_writers_of_a_version_succeeds,
            ],
            ttl: [
                a_record_expires_with_its_last_read,
                concurrent_readers_do_not_exceed_the_limit_of_reads,
                a_hybrid_record_also_expires_by_time,
                a_new_time_to_live_resets_the_count,
                the_runtimes_own_reads_do_not_count,
                an_invalid_time_to_live_is_refused,
            ],
            rights: [
                a_private_record_is_for_its_creator_curators_and_runners,
                a_private_request_is_hidden_and_runs,
                only_the_store_sets_the_curators_tag,
                only_its_author_or_a_curator_changes_a_tool,
                each_action_grants_only_its_right,
                a_shared_record_names_its_tenant,
                every_tenant_can_view_a_public_record,
                only_the_creator_or_a_curator_changes_visibility,
                grants_are_listed_for_those_concerned,
                an_invalid_grant_is_refused,
                a_secret_record_is_read_only_by_id,
                a_runner_acts_for_an_agent_and_sees_no_more,
                events_of_private_records_are_not_delivered,
                a_grant_to_subscribe_opens_the_events_until_it_is_revoked,
                a_runner_gets_no_events_of_other_tenants,
                events_of_a_secret_record_have_no_context,
                a_guest_cannot_write_records_that_the_runtime_acts_on,
                records_of_a_private_request_belong_to_its_author,
                an_old_version_is_visible_by_its_own_visibility,
                an_old_version_is_visible_by_its_own_sensitivity,
                a_caller_writes_only_requests,
                a_caller_reads_only_its_own_calls,
                a_caller_hears_only_of_its_own_calls,
                a_tool_of_a_caller_reads_its_calls_and_what_was_created_for_it,
                a_tool_of_a_caller_writes_no_definitions,
                only_a_runner_names_the_parent_of_a_request,
                only_a_runner_names_the_call_that_wrote_a_record,
            ],
            request_ids: [
                a_list_by_request_id_has_only_ones_own_response,
                a_search_by_request_id_has_only_ones_own_response,
                a_stream_by_request_id_has_only_ones_own_response,
                only_a_curator_grants_access_to_a_response,
                a_response_outlives_the_record_of_its_request,
                only_responses_have_the_response_tag,
            ],
            listing: [
                the_newest_change_comes_first_page_by_page,
                a_list_has_contexts_only_on_request,
                tags_and_schema_select,
                every_operator_selects_by_context,
                an_invalid_selector_is_refused,
                a_text_search_ranks_the_best_match_first,
                a_search_names_the_missing_field,
            ],
            events: [
                each_change_is_one_event_with_its_content,
                a_subscriber_without_a_number_starts_with_the_next,
                a_subscriber_resumes_after_its_number,
                an_unknown_event_number_is_refused,
                many_writers_reach_every_subscriber_once_and_in_order,
                a_slow_subscriber_misses_nothing,
                a_large_event_comes_through,
                another_tenants_events_are_not_delivered,
            ],
            selectors: [
                an_agent_stores_selectors,
                a_selector_belongs_to_its_agent,
                a_curator_lists_the_selectors_of_another_agent,
                a_changed_selector_applies_to_open_streams_at_once,
                a_filter_narrows_one_stream,
                an_invalid_selector_is_not_stored,
                selectors_of_an_agent_are_bounded,
            ],
            calls: [
                a_request_goes_from_queue_to_response,
                only_requests_are_queued,
                the_oldest_are_claimed_first_except_for_busy_tools,
                concurrent_runners_never_share_a_call,
                a_call_is_completed_once,
                an_old_fencing_token_is_refused,
                a_lease_expires_without_a_heartbeat,
                a_lost_run_fails_and_is_not_repeated,
                a_retry_waits_and_counts,
                a_waiting_request_is_cancelled_at_once,
                the_runner_learns_of_a_cancellation,
                a_deleted_request_still_gets_its_response,
                the_call_of_a_request_cannot_be_changed,
                a_completion_must_be_a_response,
                a_response_needs_a_lease_and_cannot_be_changed,
                another_tenants_calls_are_not_found,
            ],
            runners: [
                live_runners_are_listed_with_their_load,
                an_invalid_report_of_a_runner_is_refused,
                a_runner_learns_that_it_should_drain,
            ],
            call_history: [
                calls_are_listed_by_every_filter,
                calls_are_found_by_numbers_of_input_and_output,
                a_list_of_calls_is_paged_without_gaps,
                an_agent_lists_the_calls_whose_requests_it_can_read,
                a_call_is_shown_with_its_attempts_stages_and_relatives,
                finished_calls_are_counted_by_tool_and_code,
            ],
            profiles: [
                a_call_has_the_profiles_of_its_writer_and_tags,
                a_calls_profiles_do_not_change_later,
                records_written_under_a_profile_are_tagged,
                records_of_runners_are_written_by_runners_and_curators,
                no_role_cancels_a_schedule_that_the_profile_denies,
            ],
            deadlines: [
                a_claim_has_the_remaining_time,
                a_deadline_is_a_number_within_bounds,
                a_request_past_its_deadline_gets_its_response,
                a_retry_does_not_go_past_the_deadline,
            ],
            catalog: [
                a_catalog_is_read_back_unchanged,
                a_tool_is_read_without_the_others,
                a_part_that_changes_between_two_pages_is_read,
                the_newest_catalog_entry_of_a_tool_counts,
            ],
            secrets: [
                a_secret_is_decrypted_with_a_reason_and_rotated,
                secrets_are_listed_by_name_without_values,
                an_invalid_secret_is_refused,
                a_secret_is_bound_to_hosts_in_one_spelling,
                only_a_readable_secret_can_be_short,
                a_deleted_secret_is_gone,
                another_tenants_secret_is_not_found,
                a_grant_lets_one_record_use_a_secret,
                a_runner_renews_a_value_for_a_granted_tool,
                only_tools_are_granted_secrets,
                a_grant_ends_with_the_tools_record,
                only_curators_change_a_tool_with_secrets,
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
