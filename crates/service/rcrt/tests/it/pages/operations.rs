//! docs/operations.md and docs/webhooks.md: the documented defaults are those of the options, and
//! the documented metrics exist.

use std::collections::BTreeSet;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use axum::routing::post;
use axum::{Json, Router};
use rcrt_server::{BODY_TIME, ServerLimits, StreamOptions};
use rcrt_store::{MOST_WAITING_DELIVERIES, MOST_WAITING_DELIVERY_BYTES};
use rcrt_webhooks::DeliveryOptions;
use reqwest::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::words::Help;
use super::{Page, spans};
use crate::program::{Running, run};

/// The names of the options in a cell: `--max-streams N` is `--max-streams`.
fn options(cell: &str) -> Vec<String> {
    let words = spans(cell).into_iter().map(|span| span.split([' ', '[', '=']).next().unwrap().to_owned());
    words.filter(|word| word.starts_with("--")).collect()
}

/// Compares a table of options and defaults with the help of these commands. Returns the options.
#[track_caller]
fn has_the_defaults(first_head: &str, commands: &[&str]) -> BTreeSet<String> {
    let mut listed = BTreeSet::new();
    for row in Page::read("docs/operations.md").table(first_head) {
        let [names, _, defaults] = row.as_slice() else { panic!("{row:?} has not three cells") };
        let names_here = options(names);
        let defaults: Vec<&str> = if names_here.len() == 1 { vec![defaults] } else { defaults.split(", ").collect() };
        assert_eq!(names_here.len(), defaults.len(), "{row:?} has a default for each option");
        for (name, default) in names_here.into_iter().zip(defaults) {
            // The number of `2,000 MB`, without a unit or an explanation in brackets.
            let number = default.split(' ').next().unwrap().replace(',', "");
            let said = (number != "none").then_some(number);
            for command in commands {
                let help = Help::of(&[*command]);
                let real = help.options.get(&name).unwrap_or_else(|| panic!("rcrt {command} has no {name}"));
                assert_eq!(said, *real, "the default of {name} in docs/operations.md and in rcrt {command} --help");
                let variables = spans(names).into_iter().filter(|span| span.starts_with("RCRT_"));
                for variable in variables {
                    assert!(help.variables.contains(&variable), "rcrt {command} does not read {variable}");
                }
            }
            listed.insert(name);
        }
    }
    listed
}

#[test]
fn the_table_of_limits_has_each_limit_with_its_default() {
    let listed = has_the_defaults("option", &["up", "server"]);
    let help = run(&["server", "--help"]).ends_with(0).stdout;
    let (_, limits) = help.split_once("\nLimits:\n").expect("the help has a section of limits");
    let limits = limits.split("\n\n").take_while(|part| part.starts_with("  ")).flat_map(str::lines);
    let limits: BTreeSet<&str> =
        limits.filter_map(|line| line.trim().split(' ').next().filter(|word| word.starts_with("--"))).collect();
    assert!(limits.len() > 5, "{limits:?}");
    let missing: Vec<_> = limits.iter().filter(|name| !listed.contains(**name)).collect();
    assert!(missing.is_empty(), "docs/operations.md has not: {missing:?}");
}

#[test]
fn the_table_of_disk_bounds_has_the_defaults() {
    let listed = has_the_defaults("option of `rcrt up` and `rcrt runner`", &["up", "runner"]);
    assert!(listed.len() >= 3, "{listed:?}");
}

#[test]
fn sentences_have_the_defaults() {
    let help = Help::of(&["up"]);
    for (page, sentence, option, default) in [
        ("docs/webhooks.md", "within 20 seconds", "--webhook-timeout-ms", "20000"),
        ("docs/webhooks.md", "doubles from 2 seconds to an hour", "--webhook-first-pause-ms", "2000"),
        ("docs/webhooks.md", "doubles from 2 seconds to an hour", "--webhook-longest-pause-ms", "3600000"),
        ("docs/webhooks.md", "16 times at most", "--webhook-max-attempts", "16"),
        ("docs/webhooks.md", "for a day at most", "--webhook-max-age-hours", "24"),
        ("docs/webhooks.md", "one at a time, unless", "--webhook-parallel", "1"),
        ("docs/operations.md", "30 days after the end of the call", "--keep-calls", "30d"),
        ("docs/operations.md", "90 days after they were replaced", "--keep-versions", "90d"),
        ("docs/follow-events.md", "retained for 7 days (`--keep-events`)", "--keep-events", "7d"),
        ("docs/operations.md", "retained for 30 days (`--keep-egress-audit`)", "--keep-egress-audit", "30d"),
    ] {
        assert!(says(page, sentence), "{page} no longer says {sentence:?} of {option}");
        let real = help.options.get(option).unwrap_or_else(|| panic!("rcrt up has no {option}"));
        assert_eq!(real.as_deref(), Some(default), "{option}, of which {page} says {sentence:?}");
    }
}

/// Whether the page has this sentence, wherever its lines are wrapped.
fn says(page: &str, sentence: &str) -> bool {
    Page::read(page).text.split_whitespace().collect::<Vec<_>>().join(" ").contains(sentence)
}

#[test]
fn sentences_have_the_constants() {
    const DAY: Duration = Duration::from_hours(24);
    const MIB: i64 = 1024 * 1024;
    let (limits, streams) = (ServerLimits::default(), StreamOptions::default());
    let dead = DeliveryOptions::default().retention;
    for (page, sentence, real, said) in [
        (OPERATIONS, "its first request within 10 seconds", limits.first_header_time, Duration::from_secs(10)),
        (OPERATIONS, "Later headers, and every body, must arrive within a minute", limits.header_time, MINUTE),
        (OPERATIONS, "and every body, must arrive within a minute", BODY_TIME, MINUTE),
        (OPERATIONS, "written to it for a minute", limits.write_time, MINUTE),
        ("docs/behind-a-proxy.md", "a ping every 15 seconds", streams.ping_every, Duration::from_secs(15)),
        ("docs/webhooks.md", "dead letters, for 30 days", dead.dead, 30 * DAY),
    ] {
        assert!(says(page, sentence), "{page} no longer says {sentence:?}");
        assert_eq!(real, said, "{page} says {sentence:?}");
    }
    for (sentence, real, said) in [
        ("10,000 dead letters", i64::from(dead.most_dead), 10_000),
        ("more than 10,000 waiting deliveries", MOST_WAITING_DELIVERIES, 10_000),
        ("or 256 MiB of them", MOST_WAITING_DELIVERY_BYTES, 256 * MIB),
    ] {
        assert!(says("docs/webhooks.md", sentence), "docs/webhooks.md no longer says {sentence:?}");
        assert_eq!(real, said, "docs/webhooks.md says {sentence:?}");
    }
}

const OPERATIONS: &str = "docs/operations.md";
const MINUTE: Duration = Duration::from_mins(1);
const NOTE: &str = "a note that is embedded";

/// An embedding model of two dimensions, and a signal for when it gets the note.
fn embeddings() -> (Router, Receiver<()>) {
    let (got, signal) = channel();
    let answer = async move |Json(asked): Json<Value>| {
        let inputs = asked["input"].as_array().map_or(1, Vec::len);
        if asked["input"].to_string().contains(NOTE) {
            let _ = got.send(());
        }
        let data = (0..inputs).map(|index| json!({"object": "embedding", "index": index, "embedding": [0.6, 0.8]}));
        Json(json!({"object": "list", "model": "small", "data": data.collect::<Vec<_>>()}))
    };
    (Router::new().route("/v1/embeddings", post(answer)), signal)
}

#[test]
fn each_documented_metric_exists() {
    // `rcrt_runner=debug` is a log filter.
    let is_other = |span: &str| matches!(span, "rcrt_owner" | "rcrt_app") || span.contains('=');
    let is_metric = |span: &String| span.starts_with("rcrt_") && !is_other(span);
    // Metrics in pages for operators must be in a server's output, the others in the source that
    // describes metrics.
    let (for_operators, others): (Vec<Page>, Vec<Page>) =
        Page::all().into_iter().partition(|page| page.path == "README.md" || page.path.starts_with("docs/"));
    let named = |pages: &[Page]| pages.iter().flat_map(Page::spans).filter(is_metric).collect::<BTreeSet<String>>();
    let described = Page::read("crates/service/server/src/http/metrics.rs").text;
    for name in named(&others) {
        assert!(described.contains(&format!("\"{name}\"")), "there is no metric {name}");
    }
    let named = named(&for_operators);
    assert!(named.len() >= 4, "{named:?}");

    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).unwrap();
    let model = format!("http://{}/v1", listener.local_addr().unwrap());
    let (router, embedded) = embeddings();
    let serving = runtime.spawn(async move { axum::serve(listener, router).await });

    let folder = TempDir::new().unwrap();
    let arguments = ["up", "--listen", "127.0.0.1:0", "--embeddings", &model, "--embedding-model", "small"];
    let up = Running::start(&folder.path().join("data"), &arguments);
    let operator = up.run(&["token", "--operator"]).ends_with(0).stdout.trim().to_owned();
    let ask = |method: Method, path: &str, body: Value| {
        let request = reqwest::Client::new().request(method, format!("{}{path}", up.api())).bearer_auth(&operator);
        runtime.block_on(async {
            let answer = request.json(&body).send().await.unwrap().error_for_status().unwrap();
            answer.text().await.unwrap()
        })
    };
    // The worker updates the metric before it embeds.
    up.json(&["crumb", "create", &json!({"title": NOTE, "context": {"text": NOTE}}).to_string()]);
    embedded.recv_timeout(Duration::from_mins(2)).expect("the note is embedded");
    // A tenant with a quota, and a write over it.
    let tenants: Value = serde_json::from_str(&ask(Method::GET, "/tenants", Value::Null)).unwrap();
    let tenant = format!("/tenants/{}", tenants[0]["id"].as_str().unwrap());
    ask(Method::PUT, &tenant, json!({"name": tenants[0]["name"], "quotas": {"max_records": 1}}));
    let refused = up.run(&["crumb", "create", r#"{"title": "one too many"}"#]);
    assert!(refused.status != 0 && refused.stderr.contains("quota"), "{} {}", refused.status, refused.stderr);

    let text = ask(Method::GET, "/metrics", Value::Null);
    let missing: Vec<_> = named.iter().filter(|name| !text.contains(&format!("# TYPE {name} "))).collect();
    assert!(missing.is_empty(), "named in the documents, and not in /metrics: {missing:?}\n{text}");
    assert_eq!(up.stop().0.code(), Some(0));
    serving.abort();
}

/// docs/tenants.md and ARCHITECTURE.md: the runner logs how many tools each profile has.
#[test]
fn the_runner_logs_how_many_tools_each_profile_has() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let offered = |profile: &str| {
        let tools = up.json(&["tool", "list", "--format", "mcp", "--profile", profile]);
        tools.as_array().or_else(|| tools["tools"].as_array()).unwrap_or_else(|| panic!("{tools}")).len()
    };
    let expected: Vec<(&str, usize)> =
        ["main", "subagent", "scheduled", "a2asynthesis"].map(|profile| (profile, offered(profile))).to_vec();
    let all = expected[0].1;
    let (status, log) = up.stop();
    assert_eq!(status.code(), Some(0));
    for (profile, open) in expected {
        let of_profile =
            |line: &&str| line.contains("the catalog offers tools") && line.contains(&format!("profile={profile} "));
        let line = log.lines().rfind(of_profile).unwrap_or_else(|| panic!("nothing is logged of {profile}:\n{log}"));
        let counts = format!("open={open} closed={}", all - open);
        assert!(line.contains(&counts), "{line}\nis not {counts}");
    }
    assert!(log.lines().any(|line| line.contains("profile=subagent ") && !line.contains("closed=0")), "{log}");
}
