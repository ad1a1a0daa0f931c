//! Tools that try to break the runtime, one file each in the folders beside this file. The head of
//! each says what must happen. They run here against the real runtime, and after each the same
//! runner must answer a good call. README.md explains how to add one.

mod case;
mod harness;
mod log;
mod malformed_http;
mod names;
mod request_log;
mod run;
mod steps;
mod verdict;
mod web;

use std::path::{Path, PathBuf};

use futures::StreamExt;

use case::{Case, FAMILIES};
use harness::Harness;
use log::Log;

/// With fewer cases than this, some were lost.
const LEAST: usize = 240;
/// Cases that run at the same time. Most of them mostly wait for a limit.
const SIDE_BY_SIDE: usize = 6;
/// Runs only the cases whose file starts with this, such as `egress/` or `cpu/endless_loop.ts`.
const ONLY: &str = "RCRT_HOSTILE_ONLY";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/hostile")
}

#[tokio::test(flavor = "multi_thread")]
async fn every_hostile_tool_does_what_its_head_says() {
    let files = case::files(&folder());
    for family in FAMILIES {
        let count = files.iter().filter(|(file, _)| file.starts_with(&format!("{family}/"))).count();
        assert!(count > 0, "the family {family} has no case");
    }
    assert!(files.len() >= LEAST, "there are {} cases, and at least {LEAST} are expected", files.len());

    let log = Log::start();
    let harness = Box::pin(Harness::open()).await;
    run::introduce(&harness).await;
    let only = std::env::var(ONLY).unwrap_or_default();
    let mut faults: Vec<String> = Vec::new();
    let mut cases = Vec::new();
    for (file, path) in files.iter().filter(|(file, _)| file.starts_with(&only)) {
        let text = std::fs::read_to_string(path).unwrap();
        match Case::read(file, &text, |text, tool| fill(&harness, text, tool)) {
            Ok(case) => cases.push(case),
            Err(fault) => faults.push(format!("{file}: the head cannot be read: {fault}")),
        }
    }

    let ended: Vec<_> = futures::stream::iter(&cases)
        .map(|case| {
            let harness = &harness;
            async move { (case, run::run(harness, case).await) }
        })
        .buffer_unordered(SIDE_BY_SIDE)
        .collect()
        .await;
    for (case, faulty) in ended {
        if !faulty.is_empty() {
            faults.push(format!("tests/hostile/{}: {}\n    {}", case.file, case.words, faulty.join("\n    ")));
        }
    }
    faults.extend(run::left_behind(&harness, &cases, &log).await);
    harness.close().await;
    faults.extend(run::left_running());
    faults.sort();
    if faults.is_empty() {
        return;
    }
    let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join("hostile.log");
    std::fs::write(&kept, log.text()).unwrap();
    panic!(
        "{} faults in {} hostile cases (the runtime's log is in {}):\n\n{}\n",
        faults.len(),
        cases.len(),
        kept.display(),
        faults.join("\n\n")
    );
}

/// Replaces `{{…}}` with what a case cannot know beforehand.
fn fill(harness: &Harness, text: &str, tool: &str) -> String {
    text.replace("{{port}}", &harness.web.to_string())
        .replace("{{liar}}", &harness.liar.to_string())
        .replace("{{tool}}", tool)
        .replace("{{foreign}}", &harness.foreign.to_string())
        .replace("{{author}}", &harness.author.to_string())
}
