//! The parts of the engine: Deno's web platform without access to the machine, and our own ops. The
//! order is part of the snapshot: a snapshot works only with the same list that it was made with.

use std::borrow::Cow;

use deno_core::{Extension, ExtensionFileSource, ascii_str_include};
use deno_web::{BlobStore, InMemoryBroadcastChannel};

use crate::ops;

include!(concat!(env!("OUT_DIR"), "/web_platform.rs"));

const HTTP_CLIENT: &[ExtensionFileSource] = &[ExtensionFileSource::loaded_from_memory_during_snapshot(
    "ext:deno_fetch/22_http_client.js",
    ascii_str_include!("js/http_client.js"),
)];

const OWN: &[ExtensionFileSource] = &[
    ExtensionFileSource::new("ext:sandbox/hidden.js", ascii_str_include!("js/hidden.js")),
    ExtensionFileSource::new("ext:sandbox/running.js", ascii_str_include!("js/running.js")),
    ExtensionFileSource::new("ext:sandbox/console.js", ascii_str_include!("js/console.js")),
    ExtensionFileSource::new("ext:sandbox/op_error.js", ascii_str_include!("js/op_error.js")),
    ExtensionFileSource::new("ext:sandbox/fetch.js", ascii_str_include!("js/fetch.js")),
    ExtensionFileSource::new("ext:sandbox/globals.js", ascii_str_include!("js/globals.js")),
    ExtensionFileSource::new("ext:sandbox/context.js", ascii_str_include!("js/context.js")),
    ExtensionFileSource::new("ext:sandbox/output.js", ascii_str_include!("js/output.js")),
    ExtensionFileSource::new("ext:sandbox/failure.js", ascii_str_include!("js/failure.js")),
    ExtensionFileSource::new("ext:sandbox/transfers.js", ascii_str_include!("js/transfers.js")),
    ExtensionFileSource::new("ext:sandbox/webassembly.js", ascii_str_include!("js/webassembly.js")),
    ExtensionFileSource::new("ext:sandbox/lockdown.js", ascii_str_include!("js/lockdown.js")),
    ExtensionFileSource::new("ext:sandbox/system_timers.js", ascii_str_include!("js/system_timers.js")),
    ExtensionFileSource::new("ext:sandbox/harden.js", ascii_str_include!("js/harden.js")),
    ExtensionFileSource::new("ext:sandbox/seed.js", ascii_str_include!("js/seed.js")),
    ExtensionFileSource::new("ext:sandbox/main.js", ascii_str_include!("js/main.js")),
];

/// Whether the scripts are included: yes, unless a snapshot already contains their result.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scripts {
    Included,
    InSnapshot,
}

pub fn all(scripts: Scripts) -> Vec<Extension> {
    let mut webidl = deno_webidl::deno_webidl::init();
    webidl.lazy_loaded_js_files = Cow::Borrowed(DENO_WEBIDL);
    let mut web = deno_web::deno_web::init(BlobStore::default_arc(), None, false, InMemoryBroadcastChannel::default());
    web.lazy_loaded_js_files = Cow::Borrowed(DENO_WEB);
    web.lazy_loaded_esm_files = Cow::Borrowed(&[]);
    // Of fetch only Headers, Request, Response, FormData and bodies. Their scripts use none of its
    // ops.
    let fetch = Extension {
        name: "deno_fetch",
        deps: &["deno_webidl", "deno_web"],
        lazy_loaded_js_files: Cow::Owned([DENO_FETCH, HTTP_CLIENT].concat()),
        ..Extension::default()
    };
    let mut crypto = deno_crypto::deno_crypto::init(None);
    crypto.lazy_loaded_js_files = Cow::Borrowed(DENO_CRYPTO);
    let own = Extension {
        name: "sandbox",
        deps: &["deno_webidl", "deno_web", "deno_fetch", "deno_crypto"],
        esm_files: Cow::Borrowed(OWN),
        esm_entry_point: Some("ext:sandbox/main.js"),
        ops: Cow::Owned(ops::declarations()),
        middleware_fn: Some(Box::new(move |op| ops::admitted(op, scripts))),
        ..Extension::default()
    };
    let mut extensions = vec![webidl, web, fetch, crypto, own];
    if scripts == Scripts::InSnapshot {
        for extension in &mut extensions {
            extension.lazy_loaded_js_files = Cow::Borrowed(&[]);
            extension.esm_files = Cow::Borrowed(&[]);
            extension.esm_entry_point = None;
        }
    }
    extensions
}
