//! What each kind of agent sees of the tools that come with the program. A new tool changes this list: look at what
//! `breadcrumb::profile` closes, decide, and keep the list with `GOLDEN=renew`.

use std::path::Path;

use breadcrumb::Profile;
use breadcrumb::profile::{A2A_TOOLS, MCP_REGISTRATION_TOOLS, SUBAGENT_TOOLS};

use crate::seeds::seeds;

#[test]
fn each_profile_sees_what_was_decided_for_it() {
    let mut tools: Vec<String> = seeds().into_iter().filter_map(|seed| Some(seed.tool?.name)).collect();
    let shipped = tools.clone();
    // Those that are closed by name before they are there.
    tools.extend([SUBAGENT_TOOLS, MCP_REGISTRATION_TOOLS, A2A_TOOLS].concat().into_iter().map(str::to_owned));
    tools.sort();
    tools.dedup();
    let mut text =
        format!("{:<28}{}\n", "tool", Profile::ALL.map(|profile| format!("{:<14}", profile.as_str())).concat().trim());
    for tool in tools {
        let sees = |profile: Profile| format!("{:<14}", if profile.allows(&tool) { "yes" } else { "-" });
        let still_to_come = if shipped.contains(&tool) { "" } else { "(not there yet)" };
        let line = format!("{tool:<28}{}{still_to_come}", Profile::ALL.map(sees).concat());
        text.extend([line.trim_end(), "\n"]);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/profiles.txt");
    if std::env::var("GOLDEN").is_ok_and(|wish| wish == "renew") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "another list now; decide, and keep it with GOLDEN=renew:\n--- kept\n{kept}\n--- now\n{text}"
    );
}
