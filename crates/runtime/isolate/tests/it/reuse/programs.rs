//! Generated scripts that leave behind what they can, on everything that the golden list names.
//! The call after each sees what a call in a new process sees.

use rcrt_breadcrumb::ToolFailure;
use rcrt_sandbox::Invocation;
use serde_json::{Value, json};

use super::{Calls, shows_children};
use crate::fixture::{block_on, run_in};

const SCRIPT: &str = include_str!("../../golden/left_behind.js");
const LIST: &str = include_str!("../../golden/platform.txt");
const SCRIPTS: usize = 2000;
const MAX_STEPS: u64 = 8;
/// A script may also wait for something that never comes.
const MAX_SCRIPT_MS: u64 = 2000;
/// With fewer scripts than this in a process that ran another one before, the test says nothing.
const LEAST_REUSED: usize = 1000;
const KINDS: [&str; 16] = [
    "define",
    "set",
    "delete",
    "prototype",
    "freeze",
    "accessor",
    "call",
    "construct",
    "stamp",
    "capture",
    "global",
    "replace",
    "match",
    "console",
    "performance",
    "later",
];

/// Deterministic numbers (an LCG with the constants of Knuth's MMIX), so that a failure can be
/// repeated.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn one_of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

/// A path of the golden list as steps: `["key", name]`, `["symbol", name]`, `["get"]`, `["set"]`,
/// `["prototype"]`. `None` if it does not start at the global object or has another form.
fn steps(path: &str) -> Option<Value> {
    let mut rest = path.strip_prefix("globalThis")?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(".[[Prototype]]") {
            steps.push(json!(["prototype"]));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{get}") {
            steps.push(json!(["get"]));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("{set}") {
            steps.push(json!(["set"]));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("[Symbol(Symbol.") {
            let (name, after) = after.split_once(")]")?;
            steps.push(json!(["symbol", name]));
            rest = after;
        } else if let Some(after) = rest.strip_prefix("[\"") {
            let (name, after) = after.split_once("\"]")?;
            steps.push(json!(["key", name]));
            rest = after;
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[', '{']).unwrap_or(after.len());
            steps.push(json!(["key", after[..end]]));
            rest = &after[end..];
        }
    }
    Some(Value::Array(steps))
}

/// Every object of the list that a path from the global object leads to.
fn targets() -> Vec<Value> {
    let is_object = |kind: &str| ["function", "class", "object", "= "].iter().any(|word| kind.starts_with(word));
    LIST.lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(_, kind)| is_object(kind.strip_prefix("fixed ").unwrap_or(kind)))
        .filter_map(|(path, _)| steps(path))
        .chain([json!([])])
        .collect()
}

fn script(numbers: &mut Numbers, targets: &[Value], number: usize) -> Value {
    let steps: Vec<Value> = (0..=numbers.below(MAX_STEPS))
        .map(|_| {
            json!({
                "kind": numbers.one_of(&KINDS),
                "on": numbers.one_of(targets),
                "other": numbers.one_of(targets),
                "number": numbers.below(1 << 20),
            })
        })
        .collect();
    json!({ "secret": format!("secret-{number}-"), "steps": steps })
}

/// What a call finds, and the console lines that it writes.
async fn look(calls: &Calls) -> Result<(Value, Vec<String>), ToolFailure> {
    let outcome = calls.run(Value::Null).await;
    Ok((outcome.result?, outcome.console.into_iter().map(|line| line.message).collect()))
}

#[test]
fn the_golden_lists_paths_can_be_read() {
    assert_eq!(
        steps("globalThis.Array.prototype[Symbol(Symbol.iterator)]"),
        Some(json!([["key", "Array"], ["key", "prototype"], ["symbol", "iterator"]]))
    );
    assert_eq!(steps("globalThis.RegExp.$1{get}"), Some(json!([["key", "RegExp"], ["key", "$1"], ["get"]])));
    assert_eq!(steps("(error).stack{get}"), None);
    assert!(targets().len() > 1000, "{}", targets().len());
}

#[test]
fn the_next_call_sees_nothing_of_what_generated_scripts_leave() {
    block_on(async {
        let calls = Calls::of(SCRIPT).await;
        let targets = targets();
        let mut numbers = Numbers(21);
        calls.value(Value::Null).await;
        // The first call in a process that is prepared for others.
        let (clean, lines) = look(&calls).await.unwrap();
        assert!(clean["objects"].as_u64().unwrap() > 1000, "{clean}");
        let (mut reused, mut process) = (0, calls.process());
        for number in 0..SCRIPTS {
            let script = script(&mut numbers, &targets, number);
            let mut leaves = Invocation { input: script.clone(), ..calls.call.clone() };
            leaves.limits.timeout_ms = MAX_SCRIPT_MS;
            // It may fail in any way.
            let _ = run_in(&calls.sandbox, leaves).await;
            let seen = look(&calls).await.unwrap_or_else(|failure| panic!("after {script}: {failure}"));
            assert_eq!(seen, (clean.clone(), lines.clone()), "after script {number}: {script}");
            let now = calls.process();
            reused += usize::from(now == process);
            process = now;
        }
        calls.sandbox.close().await;
        assert!(!shows_children() || reused >= LEAST_REUSED, "{reused} of {SCRIPTS}");
    });
}
