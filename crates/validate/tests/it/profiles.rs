//! What each kind of agent sees of the tools that come with the program, and of each source. A new tool or source changes
//! this list: look at what `breadcrumb::profile` closes, decide, and keep the list with `GOLDEN=renew`.

use std::path::Path;

use breadcrumb::profile::{A2A_TOOLS, MCP_REGISTRATION_TOOLS, SUBAGENT_TOOLS};
use breadcrumb::{Profile, ToolSource};

use crate::seeds::seeds;

#[test]
fn each_profile_sees_what_was_decided_for_it() {
    let source = |text: &str| text.parse::<ToolSource>().unwrap();
    let read = seeds().into_iter().filter_map(|seed| seed.tool);
    let mut tools: Vec<(String, ToolSource)> =
        read.map(|tool| (tool.name.clone(), tool.implementation.source())).collect();
    let shipped: Vec<String> = tools.iter().map(|(name, _)| name.clone()).collect();
    // Those that are closed by name before they are there.
    let to_come = [SUBAGENT_TOOLS, MCP_REGISTRATION_TOOLS, A2A_TOOLS].concat();
    tools.extend(to_come.into_iter().map(|name| (name.to_owned(), ToolSource::Native)));
    tools.sort();
    tools.dedup_by(|later, first| later.0 == first.0);
    let mut text =
        format!("{:<28}{}\n", "tool", Profile::ALL.map(|profile| format!("{:<14}", profile.as_str())).concat().trim());
    for (tool, source) in tools {
        let sees = |profile: Profile| format!("{:<14}", if profile.allows(&tool, &source) { "yes" } else { "-" });
        let still_to_come = if shipped.contains(&tool) { "" } else { "(not there yet)" };
        let line = format!("{tool:<28}{}{still_to_come}", Profile::ALL.map(sees).concat());
        text.extend([line.trim_end(), "\n"]);
    }
    text += "\nany other tool of\n";
    for from in ["native", "sandbox", "rest", "mcp:weather", "subagent", "a2a", "a-new-kind"] {
        let sees =
            |profile: Profile| format!("{:<14}", if profile.allows("other", &source(from)) { "yes" } else { "-" });
        let line = format!("{from:<28}{}", Profile::ALL.map(sees).concat());
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
