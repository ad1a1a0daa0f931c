//! Workers that lose a protection which the first one had.

use std::fs::File;
use std::sync::Arc;

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_sandbox::level;
use rcrt_sandbox::protocol::{Kind, read_frame};
use rcrt_sandbox::{Invocation, Level, Protection, ProtectionState, Sandbox};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::{Silent, call, done, greeted_behind, invocation, options, result, send, stay};

/// Starts a sandbox whose first worker has every protection, and whose later ones lack those in
/// `lacking`.
async fn start_with_lacking_workers(lacking: &[&str]) -> (Sandbox, std::path::PathBuf) {
    let mark = std::env::temp_dir().join(format!("lacking-{}", Uuid::new_v4()));
    let mut options = options("lost_protections::loses_protections");
    options.level = Level::Strict;
    // These arguments select no test: the role reads them.
    options.worker.args.extend([lacking.join(",").into(), mark.clone().into_os_string()]);
    (Sandbox::start(options).await.unwrap(), mark)
}

async fn in_the_first_and_a_later_worker(lacking: &[&str]) -> [Result<Value, ToolFailure>; 2] {
    let (sandbox, mark) = start_with_lacking_workers(lacking).await;
    let first = call(&sandbox).await;
    let other = Invocation { owner_id: Uuid::from_u128(2), ..invocation() };
    let second = sandbox.run(other, Arc::new(Silent), CancellationToken::new()).await;
    sandbox.close().await;
    std::fs::remove_file(mark).unwrap();
    [first.result, second.result]
}

#[tokio::test]
async fn strict_refuses_a_later_worker_that_lacks_a_required_protection() {
    let [first, second] = in_the_first_and_a_later_worker(&["network namespace", "seccomp"]).await;
    assert_eq!(first.unwrap(), "it ran");
    let failure = second.unwrap_err();
    assert_eq!((failure.code, failure.is_retryable), (ErrorCode::ExecutionFailed, true), "{failure}");
    for word in ["seccomp", "no network", "the kernel refuses", "--sandbox minimal"] {
        assert!(failure.message.contains(word), "{failure}");
    }
}

#[tokio::test]
async fn a_later_worker_can_lack_an_optional_protection() {
    let [first, second] = in_the_first_and_a_later_worker(&["host name namespace"]).await;
    assert_eq!((first.unwrap(), second.unwrap()), (json!("it ran"), json!("it ran")));
}

#[test]
#[ignore = "a role for the tests above"]
fn loses_protections() {
    let protections = || {
        let words: Vec<String> = std::env::args().collect();
        let [.., lacking, mark] = words.as_slice() else { panic!("{words:?}") };
        let is_first = File::create_new(mark).is_ok();
        let lacks = |name: &str| !is_first && lacking.split(',').any(|one| one == name);
        let required = level::REQUIRED.iter().flat_map(|(_, by)| *by).copied();
        required
            .chain(["host name namespace"])
            .map(|name| Protection {
                name: name.into(),
                state: if lacks(name) {
                    ProtectionState::Unavailable("the kernel refuses".into())
                } else {
                    ProtectionState::Applied
                },
            })
            .collect()
    };
    let Some(mut socket) = greeted_behind(std::process::id(), protections, false) else { return };
    let Ok(Some(_)) = read_frame(&mut socket) else { return };
    send(&mut socket, Kind::Started, 1, 0, &[]);
    done(&mut socket, result("\"it ran\""));
    stay(socket);
}
