//! The ops of the engine's core and of the web platform that are enabled. The others fail: a tool
//! needs none of them, should it ever get hold of one.

use deno_core::OpDecl;

use super::{clock, timers};
use crate::extensions::Scripts;

/// Ops of the core that the scripts call while code runs: resources, texts, clones, promises,
/// timers.
const CORE: [&str; 30] = [
    "op_cancel_handle",
    "op_cancel_read",
    "op_close",
    "op_decode",
    "op_deserialize",
    "op_destructure_error",
    "op_dispatch_exception",
    "op_drain_pending_rejections",
    "op_encode",
    "op_encode_binary_string",
    "op_immediate_check",
    "op_is_any_array_buffer",
    "op_is_array_buffer",
    "op_is_data_view",
    "op_is_proxy",
    "op_is_shared_array_buffer",
    "op_is_string_object",
    "op_is_typed_array",
    "op_read",
    "op_read_all",
    "op_ref_op",
    "op_run_microtasks",
    "op_serialize",
    "op_structured_clone",
    "op_timer_now",
    "op_timer_schedule",
    "op_timer_track",
    "op_timer_untrack",
    "op_try_close",
    "op_unref_op",
];

/// Ops of the web platform that the interfaces of tools use.
const WEB: [&str; 50] = [
    "op_base64_atob",
    "op_base64_btoa",
    "op_base64_decode",
    "op_base64_encode_from_buffer",
    "op_blob_clone_part",
    "op_blob_create_object_url",
    "op_blob_create_part",
    "op_blob_from_object_url",
    "op_blob_read_part",
    "op_blob_remove_part",
    "op_blob_revoke_object_url",
    "op_blob_slice_part",
    "op_compression_finish",
    "op_compression_new",
    "op_compression_write",
    "op_console_inspect",
    "op_console_inspect_args",
    "op_crypto_is_seeded",
    "op_crypto_random_uuid_batch",
    "op_defer",
    "op_encoding_decode",
    "op_encoding_decode_single",
    "op_encoding_decode_utf8",
    "op_encoding_decode_utf8_ascii_only",
    "op_encoding_encode_into",
    "op_encoding_encode_into_fallback",
    "op_encoding_new_decoder",
    "op_encoding_normalize_label",
    "op_message_port_create_entangled",
    "op_message_port_post_message",
    "op_message_port_post_message_raw",
    "op_message_port_recv_message",
    "op_now",
    "op_readable_stream_resource_allocate",
    "op_readable_stream_resource_allocate_sized",
    "op_readable_stream_resource_await_close",
    "op_readable_stream_resource_close",
    "op_readable_stream_resource_get_sink",
    "op_readable_stream_resource_write_buf",
    "op_readable_stream_resource_write_error",
    "op_readable_stream_resource_write_sync",
    "op_time_origin",
    "op_url_get_serialization",
    "op_url_parse",
    "op_url_parse_search_params",
    "op_url_parse_with_base",
    "op_url_reparse",
    "op_url_stringify_search_params",
    "op_urlpattern_parse",
    "op_urlpattern_process_match_input",
];

/// Called only while the scripts are evaluated.
const START: [&str; 5] = [
    "op_get_ext_import_meta_proto",
    "op_get_extras_binding_object",
    "op_load_ext_script",
    "op_sandbox_hidden",
    "op_set_captured_bootstrap",
];

/// The op in this worker: our replacement, unchanged, or disabled.
pub fn admitted(op: OpDecl, scripts: Scripts) -> OpDecl {
    let name = op.name;
    match name {
        "op_now" => return op.with_implementation_from(&clock::op_sandbox_now()),
        "op_time_origin" => return op.with_implementation_from(&clock::op_sandbox_time_origin()),
        "op_timer_track" => return op.with_implementation_from(&timers::op_sandbox_timer_track()),
        "op_timer_untrack" => return op.with_implementation_from(&timers::op_sandbox_timer_untrack()),
        _ => {}
    }
    let is_ours = name.starts_with("op_sandbox_") && !START.contains(&name);
    let starts = scripts == Scripts::Included && START.contains(&name);
    if is_ours || starts || CORE.contains(&name) || WEB.contains(&name) { op } else { op.disable() }
}
