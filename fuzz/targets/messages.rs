//! Every JSON payload of the worker's protocol, in both directions: what is accepted has one
//! canonical form, which parses back to itself. A message with different meanings for two readers
//! could bypass a check.
//!
//! Input: the message's name, a line end, the JSON.
#![no_main]

use libfuzzer_sys::{Corpus, fuzz_target};
use rcrt_sandbox::protocol::{
    ApiReply, Begin, BodyEnd, CallDone, CallStart, FetchReply, FetchStart, Hello, decode, encode,
};
use rcrt_sandbox::{ApiCall, ConsoleLine};
use serde::Serialize;
use serde::de::DeserializeOwned;

fn check<T: Serialize + DeserializeOwned>(payload: &[u8]) -> Corpus {
    // Refused input still helps the fuzzer.
    let Ok(message) = decode::<T>(payload) else { return Corpus::Keep };
    let canonical = encode(&message).expect("what was read can be written");
    let again: T = decode(&canonical).expect("what was written can be read");
    assert_eq!(encode(&again).expect("and written again"), canonical);
    Corpus::Keep
}

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return Corpus::Reject };
    let (name, payload) = (&input[..end], &input[end + 1..]);
    match name {
        // From the parent.
        b"Begin" => check::<Begin>(payload),
        b"CallStart" => check::<CallStart>(payload),
        b"ApiReply" => check::<ApiReply>(payload),
        b"FetchReply" => check::<FetchReply>(payload),
        // From the worker.
        b"Hello" => check::<Hello>(payload),
        b"CallDone" => check::<CallDone>(payload),
        b"ConsoleLine" => check::<ConsoleLine>(payload),
        b"ApiCall" => check::<ApiCall>(payload),
        b"FetchStart" => check::<FetchStart>(payload),
        b"SnapshotEnd" => check::<Option<String>>(payload),
        // From either.
        b"BodyEnd" => check::<BodyEnd>(payload),
        _ => Corpus::Reject,
    }
});
