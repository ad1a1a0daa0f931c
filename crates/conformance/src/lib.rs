//! The behaviour that every implementation of [`breadcrumb::Breadcrumbs`] must have, one async
//! function for each. The Postgres store and the HTTP client pass the same suite. For tests only.
//!
//! An implementation provides a [`Harness`] and calls [`suite!`] in a test module. This crate
//! deliberately knows no database and no transport: a test uses the trait alone.
//!
//! Begin with `harness.rs`, then `records.rs` and `calls.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc)]
// A result is what these take, as it comes.
#![allow(clippy::needless_pass_by_value)]

mod busy;
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
pub mod secrets;
pub mod selectors;
pub mod ttl;

pub use busy::Busy;
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
                a_record_may_have_nothing_but_a_title,
                a_change_makes_a_new_version_and_keeps_what_it_does_not_name,
                a_stale_change_is_refused_and_changes_nothing,
                old_versions_stay_readable,
                a_deleted_record_is_gone,
                an_ended_record_is_gone_at_once,
                an_ended_record_is_taken_out_with_an_event,
                what_cannot_be_stored_is_refused_by_its_field,
                a_record_can_be_large_but_not_too_large,
                the_same_key_gets_the_first_answer,
                the_same_key_under_another_trace_gets_the_first_answer,
                the_same_key_at_the_same_time_makes_one_record,
                another_tenant_sees_nothing,
                of_many_writers_on_one_version_one_wins,
            ],
            ttl: [
                a_record_ends_with_its_last_read,
                of_many_readers_at_once_as_many_get_it_as_may,
                a_hybrid_record_ends_by_time_too,
                a_new_time_to_live_counts_anew,
                the_runtimes_own_reads_do_not_count,
                a_time_to_live_that_means_nothing_is_refused,
            ],
            rights: [
                a_private_record_is_its_creators_and_the_curators,
                a_private_request_is_hidden_and_runs,
                a_tool_says_truly_whether_a_curator_wrote_it,
                each_action_opens_what_it_names,
                a_shared_record_says_whose_it_is,
                what_is_public_is_read_in_short_by_every_tenant,
                who_created_a_record_says_who_sees_it,
                grants_are_listed_to_whom_they_concern,
                a_grant_that_means_nothing_is_refused,
                a_secret_is_read_by_id_alone,
                a_runner_acts_for_an_agent_and_sees_no_more,
                what_is_private_to_others_is_not_heard,
                a_grant_to_subscribe_opens_the_events_until_it_is_revoked,
                a_runner_hears_no_other_tenants_records,
                a_secrets_events_tell_nothing_of_its_context,
                a_guest_writes_nothing_that_a_runtime_acts_upon,
                what_comes_of_a_private_request_is_its_authors,
                an_old_version_is_seen_by_its_own_visibility,
                an_old_version_is_seen_by_its_own_sensitivity,
            ],
            request_ids: [
                a_list_by_request_id_gives_the_askers_own_response,
                a_search_by_request_id_gives_the_askers_own_response,
                a_stream_by_request_id_gives_the_askers_own_response,
                only_a_curator_grants_access_to_a_response,
                a_response_outlives_the_record_of_its_request,
                nothing_else_is_tagged_as_a_response,
            ],
            listing: [
                the_newest_change_comes_first_page_by_page,
                a_list_has_contexts_only_when_asked,
                tags_and_schema_select,
                every_operator_selects_by_context,
                a_selector_that_means_nothing_is_refused,
                words_find_the_best_match_first,
                a_search_says_what_it_lacks,
            ],
            events: [
                each_change_is_one_event_with_its_content,
                a_subscriber_without_a_number_starts_with_the_next,
                a_subscriber_goes_on_after_the_number_it_names,
                a_number_that_was_never_given_out_is_refused,
                many_writers_reach_every_subscriber_once_and_in_order,
                a_slow_subscriber_misses_nothing,
                a_large_event_comes_through,
                another_tenants_events_are_not_heard,
            ],
            selectors: [
                an_agent_keeps_selectors,
                a_selector_is_its_agents_alone,
                a_changed_selector_counts_for_open_streams_at_once,
                a_filter_narrows_one_stream,
                a_selector_that_means_nothing_is_not_kept,
                an_agent_has_so_many_selectors_and_no_more,
            ],
            calls: [
                a_request_goes_from_queue_to_response,
                only_requests_are_queued,
                the_oldest_are_claimed_first_but_for_busy_tools,
                runners_side_by_side_never_share_a_call,
                a_call_is_completed_once,
                an_old_fence_can_do_nothing,
                a_lease_ends_without_a_heartbeat,
                a_lost_run_is_answered_and_not_repeated,
                a_retry_waits_and_counts,
                a_waiting_request_is_cancelled_at_once,
                the_runner_is_told_of_a_cancellation,
                a_deleted_request_is_still_answered,
                what_a_request_asks_cannot_be_changed,
                a_response_must_be_one,
                a_response_comes_through_a_lease_alone_and_stays,
                another_tenants_calls_are_not_there,
            ],
            profiles: [
                a_call_has_its_writers_profile_and_those_of_its_tags,
                a_calls_profiles_are_those_of_its_writing,
                what_is_written_under_a_profile_is_marked_with_it,
                what_runners_keep_is_written_by_them_and_by_curators,
                no_role_cancels_a_schedule_where_the_profile_may_not,
            ],
            deadlines: [
                a_claim_tells_how_much_time_is_left,
                a_deadline_is_a_number_within_bounds,
                a_request_past_its_deadline_is_answered_by_itself,
                a_retry_does_not_go_past_the_deadline,
            ],
            catalog: [
                a_catalog_comes_back_as_it_was_written,
                the_newest_word_on_a_tool_counts,
            ],
            secrets: [
                a_secret_opens_for_a_reason_and_rotates,
                secrets_are_listed_by_name_without_values,
                a_secret_that_cannot_be_kept_is_refused,
                a_secret_is_bound_to_hosts_in_one_spelling,
                only_a_readable_secret_may_be_short,
                a_deleted_secret_is_gone,
                another_tenants_secret_is_not_there,
                a_grant_lets_one_record_use_a_secret,
                only_tools_are_granted_secrets,
                a_grant_ends_with_the_tools_record,
                a_tool_with_secrets_is_changed_by_curators_alone,
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
