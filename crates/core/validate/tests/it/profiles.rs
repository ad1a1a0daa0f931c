//! Which shipped tools, and which sources, each profile sees. A new tool or source changes this
//! list. Then check what `rcrt_breadcrumb::profile` denies, and update the list with
//! `GOLDEN=renew`.

use std::collections::BTreeSet;
use std::path::Path;

use rcrt_breadcrumb::profile::{A2A_TOOLS, MCP_REGISTRATION_TOOLS, SUBAGENT_TOOLS};
use rcrt_breadcrumb::{Profile, ToolSource};

use crate::seeds::seeds;

#[test]
fn each_profile_sees_the_tools_of_the_golden_list() {
    let read = seeds().into_iter().filter_map(|seed| seed.tool);
    let mut tools: Vec<(String, ToolSource)> =
        read.map(|tool| (tool.name.clone(), tool.implementation.source())).collect();
    let shipped: Vec<String> = tools.iter().map(|(name, _)| name.clone()).collect();
    // Tools that are denied by name before they exist.
    let to_come = [SUBAGENT_TOOLS, MCP_REGISTRATION_TOOLS, A2A_TOOLS].concat();
    tools.extend(to_come.into_iter().map(|name| (name.to_owned(), ToolSource::Native)));
    tools.sort();
    tools.dedup_by(|later, first| later.0 == first.0);
    let mut text =
        format!("{:<28}{}\n", "tool", Profile::ALL.map(|profile| format!("{:<14}", profile.as_str())).concat().trim());
    for (tool, source) in tools {
        let sees = |profile: Profile| format!("{:<14}", if profile.allows(&tool, &source) { "yes" } else { "-" });
        let note = if shipped.contains(&tool) { "" } else { "(not included yet)" };
        let line = format!("{tool:<28}{}{note}", Profile::ALL.map(sees).concat());
        text.extend([line.trim_end(), "\n"]);
    }
    text += "\nany other tool of\n";
    for from in sources() {
        let sees = |profile: Profile| format!("{:<14}", if profile.allows("other", &from) { "yes" } else { "-" });
        let from = from.to_string();
        let line = format!("{from:<28}{}", Profile::ALL.map(sees).concat());
        text.extend([line.trim_end(), "\n"]);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/profiles.txt");
    if std::env::var("GOLDEN").is_ok_and(|mode| mode == "renew") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "the list changed; check it, and update it with GOLDEN=renew:\n--- kept\n{kept}\n--- now\n{text}"
    );
}

/// One source of each kind, then those that a profile names. A new kind does not compile until it
/// is listed here.
fn sources() -> Vec<ToolSource> {
    let next = |source: &ToolSource| match source {
        ToolSource::Native => Some(ToolSource::Sandbox),
        ToolSource::Sandbox => Some(ToolSource::Rest),
        ToolSource::Rest => Some(ToolSource::Mcp("weather".into())),
        ToolSource::Mcp(_) => Some(ToolSource::Other("a-new-kind".into())),
        ToolSource::Other(_) => None,
    };
    let mut sources: Vec<ToolSource> = std::iter::successors(Some(ToolSource::Native), next).collect();
    let kinds: BTreeSet<String> = sources.iter().map(|source| source.kind().to_owned()).collect();
    let named: BTreeSet<&str> = Profile::ALL.iter().flat_map(|profile| profile.filter().named_sources()).collect();
    sources.extend(named.into_iter().filter(|name| !kinds.contains(*name)).map(|name| name.parse().unwrap()));
    sources
}
