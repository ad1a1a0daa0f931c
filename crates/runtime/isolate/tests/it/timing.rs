//! Prints how long calls take.

#![allow(clippy::print_stderr)]

use std::time::{Duration, Instant};

use rcrt_breadcrumb::Isolation;
use serde_json::json;

use crate::fixture::{block_on, function, invocation, run_in, shared, start};

#[test]
#[ignore = "prints timings; run it by hand with --nocapture"]
fn call_durations() {
    let print = |what: &str, mut times: Vec<Duration>| {
        times.sort();
        eprintln!(
            "{what}: median {:?}, least {:?}, most {:?}",
            times[times.len() / 2],
            times[0],
            times[times.len() - 1]
        );
    };
    let begun = Instant::now();
    shared();
    eprintln!("start of a sandbox: {:?}", begun.elapsed());
    for (what, isolation, pause) in [
        ("fresh process, prepared", Isolation::Process, Duration::from_millis(30)),
        ("fresh process, back to back", Isolation::Process, Duration::ZERO),
        ("default", Isolation::Call, Duration::ZERO),
        ("kept isolate", Isolation::Tool, Duration::ZERO),
    ] {
        let mut call = invocation(&function("return input.a + 1"), json!({"a": 1}));
        call.isolation = isolation;
        let times = block_on(async {
            let mut times = Vec::new();
            for _ in 0..100 {
                let begun = Instant::now();
                run_in(shared(), call.clone()).await.result.unwrap();
                times.push(begun.elapsed());
                tokio::time::sleep(pause).await;
            }
            times
        });
        print(what, times);
    }
    let times = block_on(async {
        let mut times = Vec::new();
        for _ in 0..5 {
            let sandbox = start(|options| options.spares = 0).await;
            let call = invocation(&function("return 1"), json!(null));
            run_in(&sandbox, call.clone()).await.result.unwrap();
            let mut other = call;
            other.owner_id = uuid::Uuid::from_u128(9);
            let begun = Instant::now();
            run_in(&sandbox, other).await.result.unwrap();
            times.push(begun.elapsed());
            sandbox.close().await;
        }
        times
    });
    print("a new worker process", times);
}
