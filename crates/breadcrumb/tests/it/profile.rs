use breadcrumb::profile::{A2A_TOOLS, MCP_REGISTRATION_TOOLS, SUBAGENT_TOOLS};
use breadcrumb::{Profile, Profiles};

#[test]
fn each_profile_closes_its_own_tools_and_no_others() {
    let closed = |profile: Profile| {
        let lists = [SUBAGENT_TOOLS, MCP_REGISTRATION_TOOLS, A2A_TOOLS, &["cancel_scheduled_task", "read_file"]];
        lists.concat().into_iter().filter(|tool| !profile.allows(tool)).collect::<Vec<_>>()
    };
    assert_eq!(closed(Profile::Main), [""; 0]);
    assert_eq!(
        closed(Profile::Subagent),
        [SUBAGENT_TOOLS, MCP_REGISTRATION_TOOLS, &["cancel_scheduled_task"]].concat()
    );
    assert_eq!(closed(Profile::Scheduled), [SUBAGENT_TOOLS, MCP_REGISTRATION_TOOLS].concat());
    assert_eq!(closed(Profile::A2aSynthesis), A2A_TOOLS);
}

#[test]
fn profiles_go_through_tags_and_only_close() {
    let mut profiles = Profiles::of(Profile::Scheduled);
    let tags = ["profile:subagent", "profile:main", "profile:nobody", "workspace:w", "profile:"].map(String::from);
    profiles.add_tags(&tags);
    assert_eq!(profiles.tags().collect::<Vec<_>>(), ["profile:subagent", "profile:scheduled"]);
    let mut back = Profiles::default();
    back.add_tags(&profiles.tags().collect::<Vec<_>>());
    assert_eq!(back, profiles);
    assert_eq!(profiles.closing("cancel_scheduled_task"), Some(Profile::Subagent));
    assert_eq!(profiles.closing("read_file"), None);
    assert_eq!(Profiles::of(Profile::Main), Profiles::default());
}

#[test]
fn a_profile_is_known_by_its_name() {
    for profile in Profile::ALL {
        assert_eq!(profile.to_string().parse::<Profile>().unwrap(), profile);
        assert_eq!(serde_json::to_value(profile).unwrap(), profile.as_str());
    }
    assert!("Main".parse::<Profile>().unwrap_err().contains("main, subagent, scheduled, a2asynthesis"));
}
