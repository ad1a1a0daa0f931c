//! `rcrt call` while the database does not respond, and while the server refuses its event stream.
#![cfg(target_os = "linux")]

use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use tempfile::TempDir;

use crate::killed::tree;
use crate::program::{Ran, Running};

/// More than the time limits of the calls, less than that of one request without such a limit.
const PATIENCE: Duration = Duration::from_mins(2);

#[test]
fn a_call_ends_at_its_timeout_while_the_database_does_not_respond() {
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    // Postgres comes before its processes. A process that it started just before it got the signal
    // is in the second list.
    let to_database = |signal| {
        for _ in 0..2 {
            let database = tree(server.pid()).split_off(1);
            assert!(database.len() > 1, "Postgres and its processes: {database:?}");
            for pid in database {
                let _ = kill(pid, signal);
            }
        }
    };

    // The calls wait in the queue. The next try has more time to get there on a busy machine.
    let ran = ["5", "20", "80"].into_iter().enumerate().find_map(|(before, timeout)| {
        let mut call = server.command(&["call", "echo", "--timeout", timeout]);
        let call = call.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let begun = Instant::now();
        while server.json(&["calls"]).as_array().unwrap().len() <= before {
            assert!(begun.elapsed() < PATIENCE, "the request is written");
        }
        to_database(Signal::SIGSTOP);
        let ran = Ran::of(call.wait_with_output().unwrap());
        assert!(begun.elapsed() < PATIENCE, "{}", ran.stderr);
        to_database(Signal::SIGCONT);
        (ran.status == 5).then_some(ran)
    });
    let stderr = ran.expect("the database stopped before the timeout").stderr;
    assert!(stderr.contains("no response within") && stderr.contains("the call is not cancelled and may still run"));

    to_database(Signal::SIGSTOP);
    let begun = Instant::now();
    let ran = server.run(&["call", "echo", "--timeout", "2"]);
    assert!(begun.elapsed() < PATIENCE, "{}", ran.stderr);
    to_database(Signal::SIGCONT);
    assert!(ran.ends_with(5).stderr.contains(server.api()));
    let (status, stderr) = server.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

#[test]
fn a_refused_event_stream_is_reported_with_its_limit() {
    let folder = TempDir::new().unwrap();
    let options = ["up", "--listen", "127.0.0.1:0", "--max-streams-per-agent", "1"];
    let up = Running::start(&folder.path().join("data"), &options);
    let token = up.run(&["token"]).ends_with(0).stdout.trim().to_owned();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let held = runtime.block_on(async {
        loop {
            // The stream of the first call closes soon.
            let request = reqwest::Client::new().get(format!("{}/events/stream", up.api())).bearer_auth(&token);
            let stream = request.send().await.unwrap();
            if stream.status() == 200 {
                return stream;
            }
        }
    });
    let limit = "for now: the agent has 1 event streams open, which is the maximum; close one, or ask the operator for a \
                 higher --max-streams-per-agent";
    let watched = up.run(&["crumb", "watch"]).ends_with(5).stderr;
    assert!(watched.contains(limit) && !watched.contains("is the server running"), "{watched}");
    // The call has its response all the same.
    let ran = up.run(&["call", "calculator", r#"{"expression": "6 * 7"}"#]).ends_with(0);
    assert!(ran.stdout.contains("42"), "{}", ran.stdout);
    assert!(ran.stderr.contains("refuses the event stream") && ran.stderr.contains(limit), "{}", ran.stderr);
    drop(held);
    assert_eq!(up.stop().0.code(), Some(0));
}
