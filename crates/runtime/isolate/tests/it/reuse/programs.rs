//! Generated scripts that leave behind what they can, on everything that the golden list names.
//! The call after each sees what a call in a new process sees.

use rcrt_breadcrumb::ToolFailure;
use rcrt_sandbox::Invocation;
use serde_json::{Value, json};

use super::{Calls, shows_children};
use crate::fixture::{block_on, run_in};

const SCRIPT: &str = concat!(include_str!("../../golden/roots.js"), include_str!("../../golden/left_behind.js"));
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

/// The scripts of each run are the same, so that a failure can be repeated. `SEED=7 cargo test`
/// generates others.
const SEED: u64 = 21;

/// Deterministic numbers (an LCG with the constants of Knuth's MMIX).
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

/// A path of the golden list as steps from the global object: `["root", name]` if it starts at
/// another one, `["key", name]`, `["symbol", name]`, `["get"]`, `["set"]`, `["prototype"]`.
fn steps(path: &str) -> Option<Value> {
    let (mut rest, mut steps) = match path.strip_prefix("globalThis") {
        Some(rest) => (rest, Vec::new()),
        None => {
            let end = path.find(')')? + 1;
            (&path[end..], vec![json!(["root", path[..end]])])
        }
    };
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
        } else if let Some(after) = rest.strip_prefix("[Symbol(") {
            let (name, after) = after.split_once(")]")?;
            steps.push(json!(["symbol", format!("Symbol({name})")]));
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

/// Every object of the list.
fn targets() -> Vec<Value> {
    let is_object = |kind: &str| ["function", "class", "object", "= "].iter().any(|word| kind.starts_with(word));
    LIST.lines()
        .filter_map(|line| line.rsplit_once(": "))
        .filter(|(_, kind)| is_object(kind.strip_prefix("fixed ").unwrap_or(kind)))
        .map(|(path, _)| steps(path).unwrap_or_else(|| panic!("{path}")))
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

fn seed() -> u64 {
    std::env::var("SEED").map_or(SEED, |seed| seed.parse().expect("SEED is a number"))
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
        Some(json!([["key", "Array"], ["key", "prototype"], ["symbol", "Symbol(Symbol.iterator)"]]))
    );
    assert_eq!(steps("globalThis.RegExp.$1{get}"), Some(json!([["key", "RegExp"], ["key", "$1"], ["get"]])));
    assert_eq!(steps("(error).stack{get}"), Some(json!([["root", "(error)"], ["key", "stack"], ["get"]])));
    let beside = |target: &Value| target[0][0] == "root";
    assert!(targets().iter().filter(|target| beside(target)).count() > 100);
    assert!(targets().iter().filter(|target| !beside(target)).count() > 1000);
}

#[test]
fn the_next_call_sees_nothing_of_what_generated_scripts_leave() {
    block_on(async {
        let calls = Calls::of(SCRIPT).await;
        let targets = targets();
        let mut numbers = Numbers(seed());
        // The first call of a tool has a process of its own, the next ones a prepared one. When
        // processes in a row could not be kept, some calls have their own again.
        let own = look(&calls).await.unwrap();
        let prepared = look(&calls).await.unwrap();
        for (found, _) in [&own, &prepared] {
            assert!(found["objects"].as_u64().unwrap() > 1000, "{found}");
        }
        assert_ne!(own, prepared);
        let (mut reused, mut process) = (0, calls.process());
        for number in 0..SCRIPTS {
            let script = script(&mut numbers, &targets, number);
            let mut leaves = Invocation { input: script.clone(), ..calls.call.clone() };
            leaves.limits.timeout_ms = MAX_SCRIPT_MS;
            // It may fail in any way.
            let _ = run_in(&calls.sandbox, leaves).await;
            let seen = look(&calls).await.unwrap_or_else(|failure| panic!("after {script}: {failure}"));
            let now = calls.process();
            let is_same = shows_children() && now == process;
            let is_clean = seen == prepared || (seen == own && !is_same);
            assert!(is_clean, "after script {number}: {script}\nfound {seen:?}, not {own:?} or {prepared:?}");
            reused += usize::from(is_same);
            process = now;
        }
        calls.sandbox.close().await;
        assert!(!shows_children() || reused >= LEAST_REUSED, "{reused} of {SCRIPTS}");
    });
}
