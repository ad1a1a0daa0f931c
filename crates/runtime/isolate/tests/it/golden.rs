//! Everything that a tool can reach from its global scope, its context and the objects that the
//! platform creates, as one list: `tests/golden/platform.txt`. Anything that an update of the
//! engine or of the platform adds shows up here and must be reviewed.
//!
//! To renew the list, run `GOLDEN=renew cargo test -p isolate --test it golden`, and review the
//! difference before you commit it.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use crate::fixture::{block_on, invocation, run_in, shared};

const WALK: &str = concat!(include_str!("../golden/roots.js"), include_str!("../golden/walk.js"));
/// How many lines of a difference a failure shows.
const SHOWN: usize = 60;

fn reached() -> Vec<String> {
    let found = block_on(run_in(shared(), invocation(WALK, Value::Null))).result.unwrap();
    let mut lines: Vec<String> =
        found.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect();
    lines.sort();
    lines
}

#[test]
fn a_tool_reaches_what_the_list_names_and_nothing_else() {
    let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/platform.txt");
    let reached = reached();
    if std::env::var("GOLDEN").is_ok_and(|word| word == "renew") {
        std::fs::write(&file, reached.join("\n") + "\n").unwrap();
        return;
    }
    let known = std::fs::read_to_string(&file).unwrap_or_default();
    let known: Vec<&str> = known.lines().collect();
    let new =
        reached.iter().filter(|line| known.binary_search(&line.as_str()).is_err()).map(|line| format!("+ {line}"));
    let gone = known
        .iter()
        .filter(|line| reached.binary_search_by(|other| other.as_str().cmp(line)).is_err())
        .map(|line| format!("- {line}"));
    let difference: Vec<String> = new.chain(gone).collect();
    assert!(
        difference.is_empty(),
        "{} lines differ from {}; the top of this test says how to renew it\n{}",
        difference.len(),
        file.display(),
        difference[..difference.len().min(SHOWN)].join("\n")
    );
}

#[test]
fn the_list_has_no_names_of_the_engines_host() {
    let strange: Vec<String> = reached()
        .into_iter()
        .filter(|line| {
            let line = line.to_lowercase();
            [
                "deno.custom",
                "deno.private",
                "deno.internal",
                "nodejs.util",
                "__bootstrap",
                "primordial",
                ".op_",
                "async_op",
                // Not in every build of V8, and tools must see the same platform with each.
                "temporal",
            ]
            .iter()
            .any(|word| line.contains(word))
        })
        .collect();
    assert_eq!(strange, Vec::<String>::new());
}

/// Each variable in which the platform could keep something from call to call has a reason why no
/// call finds it. An update that adds one fails here: it needs a reason or a change of `harden.js`.
#[test]
fn each_variable_of_the_platform_that_can_change_has_a_reason() {
    let found: BTreeSet<&str> = include_str!(concat!(env!("OUT_DIR"), "/module_state.txt")).lines().collect();
    let listed = include_str!("../golden/module_state.txt").lines().filter(|line| !line.starts_with('#'));
    let listed: BTreeSet<&str> = listed.filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    assert!(found.len() > 40, "{found:?}");
    assert_eq!(found, listed);
}
