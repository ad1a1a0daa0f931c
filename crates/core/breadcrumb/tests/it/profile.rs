use rcrt_breadcrumb::profile::{A2A_REGISTRATION_TOOLS, A2A_TOOLS, MCP_REGISTRATION_TOOLS, SUBAGENT_TOOLS};
use rcrt_breadcrumb::{Profile, Profiles, ToolFilter, ToolSource};

fn source(text: &str) -> ToolSource {
    text.parse().unwrap()
}

#[test]
fn each_profile_denies_its_listed_tools_only() {
    let closed = |profile: Profile| {
        let others: &[&str] = &["cancel_scheduled_task", "read_file"];
        let lists = [SUBAGENT_TOOLS, MCP_REGISTRATION_TOOLS, A2A_TOOLS, A2A_REGISTRATION_TOOLS, others];
        lists
            .concat()
            .into_iter()
            .filter(|tool| !profile.allows(tool, &ToolSource::Native))
            .inspect(|tool| assert!(profile.denies_name(tool)))
            .collect::<Vec<_>>()
    };
    assert_eq!(closed(Profile::Main), [""; 0]);
    assert_eq!(
        closed(Profile::Subagent),
        [SUBAGENT_TOOLS, MCP_REGISTRATION_TOOLS, A2A_REGISTRATION_TOOLS, &["cancel_scheduled_task"]].concat()
    );
    assert_eq!(closed(Profile::Scheduled), [SUBAGENT_TOOLS, MCP_REGISTRATION_TOOLS, A2A_REGISTRATION_TOOLS].concat());
    assert_eq!(closed(Profile::A2aSynthesis), [MCP_REGISTRATION_TOOLS, A2A_TOOLS, A2A_REGISTRATION_TOOLS].concat());
}

/// A source without a decision is allowed for `main` alone.
#[test]
fn each_profile_allows_its_listed_sources_only() {
    let everyday = ["native", "sandbox", "rest", "mcp:weather"];
    for (profile, more) in [
        (Profile::Main, vec!["subagent", "a2a", "telepathy"]),
        (Profile::Subagent, vec!["a2a"]),
        (Profile::Scheduled, vec!["a2a"]),
        (Profile::A2aSynthesis, vec!["subagent"]),
    ] {
        let all = everyday.into_iter().chain(["subagent", "a2a", "telepathy"]);
        let open: Vec<&str> = all.filter(|text| profile.allows("anything", &source(text))).collect();
        assert_eq!(open, [everyday.to_vec(), more].concat(), "{profile}");
    }
}

#[test]
fn filter_combines_sources_and_names() {
    let filter = ToolFilter::nothing()
        .allow_sources(&["rest", "mcp"])
        .deny_sources(&["mcp:shell"])
        .allow_names(&["echo", "bash"])
        .deny_names(&["bash", "wipe"]);
    for (tool, from, is_open) in [
        ("fetch", "rest", true),
        ("wipe", "rest", false),
        ("forecast", "mcp:weather", true),
        ("run", "mcp:shell", false),
        ("echo", "sandbox", true),
        ("other", "sandbox", false),
        ("bash", "native", false),
        // A denied source takes precedence over an allowed name.
        ("echo", "mcp:shell", false),
    ] {
        assert_eq!(filter.allows(tool, &source(from)), is_open, "{tool} of {from}");
    }
    assert!(ToolFilter::everything().allows("fetch", &source("telepathy")));
    assert!(!ToolFilter::everything().deny_sources(&["rest"]).allows("fetch", &source("rest")));
    assert!(!ToolFilter::nothing().allows("fetch", &source("rest")));
    assert!(ToolFilter::nothing().allow_names(&["fetch"]).allows("fetch", &source("telepathy")));
}

#[test]
fn profiles_round_trip_through_tags_and_only_deny() {
    let mut profiles = Profiles::of(Profile::Scheduled);
    let tags = ["profile:subagent", "profile:main", "profile:nobody", "workspace:w", "profile:"].map(String::from);
    profiles.add_tags(&tags);
    assert_eq!(profiles.tags().collect::<Vec<_>>(), ["profile:subagent", "profile:scheduled"]);
    let mut back = Profiles::default();
    back.add_tags(&profiles.tags().collect::<Vec<_>>());
    assert_eq!(back, profiles);
    assert_eq!(profiles.denied_by("cancel_scheduled_task", &ToolSource::Native), Some(Profile::Subagent));
    assert_eq!(profiles.name_denied_by("cancel_scheduled_task"), Some(Profile::Subagent));
    assert_eq!(profiles.denied_by("read_file", &ToolSource::Native), None);
    assert_eq!(profiles.denied_by("read_file", &source("telepathy")), Some(Profile::Subagent));
    assert_eq!(profiles.name_denied_by("read_file"), None);
    assert_eq!(Profiles::of(Profile::Main), Profiles::default());
}

#[test]
fn profiles_are_parsed_by_name() {
    for profile in Profile::ALL {
        assert_eq!(profile.to_string().parse::<Profile>().unwrap(), profile);
        assert_eq!(serde_json::to_value(profile).unwrap(), profile.as_str());
    }
    assert!("Main".parse::<Profile>().unwrap_err().contains("main, subagent, scheduled, a2asynthesis"));
}
