//! Configuration files of other programs.

use rcrt_mcp::config_file::{plain_secrets, read};
use rcrt_mcp::{Elicitation, tool_name};

#[test]
fn both_formats_are_read() {
    let named = r#"{"mcpServers": {
        "weather": {"command": "uvx", "args": ["mcp-server-weather"], "env": {"API_KEY": "${WEATHER_KEY}"}},
        "docs": {"type": "http", "url": "https://mcp.example.com/mcp", "headers": {"X-Team": "a"}, "toolTimeoutMs": 5000,
            "elicitation": "defaults"},
        "off": {"transport": "stdio", "command": "x", "disabled": true, "allowedTools": ["a"]}
    }}"#;
    let servers = read(named).unwrap();
    assert_eq!(servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["docs", "off", "weather"]);
    assert_eq!((servers[0].tool_timeout_ms, servers[0].elicitation), (5000, Elicitation::Defaults));
    assert!(!servers[1].enabled && servers[1].offers("a") && !servers[1].offers("b"));
    assert_eq!(servers[2].transport.secrets(), ["WEATHER_KEY"]);
    assert!(servers[2].transport.describe().starts_with("API_KEY=${WEATHER_KEY} uvx mcp-server-weather (in the jail"));

    let listed = r#"{"Mcp": {"Servers": [{"Name": "weather-server", "Command": "uvx",
        "Arguments": ["mcp-server-weather"], "EnvironmentVariables": {"API_KEY": "abc"}}]}}"#;
    let servers = read(listed).unwrap();
    assert_eq!(servers[0].name, "weather-server");
    assert_eq!(plain_secrets(&servers[0]), ["API_KEY"]);
}

#[test]
fn every_problem_is_named() {
    let text = r#"{"mcpServers": {
        "a__b": {"command": "x"},
        "c": {"comand": "x"},
        "d": {"type": "carrier-pigeon"},
        "e": {"url": "ftp://example.com"},
        "f": 7
    }}"#;
    let found = read(text).unwrap_err().to_string();
    for part in [
        "mcpServers.a__b.name",
        "did you mean command?",
        "carrier-pigeon",
        "mcpServers.e.transport.url",
        "mcpServers.f: must be an object",
    ] {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert!(read("{}").unwrap_err().to_string().contains("mcpServers"));
    assert!(read("nonsense").unwrap_err().to_string().contains("is not JSON"));
}

#[test]
fn names_of_tools_are_plain_and_at_most_64_characters() {
    assert_eq!(tool_name("github", "search_issues"), "github__search_issues");
    assert_eq!(tool_name("github", "search issues/ü"), "github__search_issues__");
    assert_eq!(tool_name("7zip", "list"), "_7zip__list");
    let long = tool_name("github", &"x".repeat(100));
    assert_eq!(long.len(), 64);
    assert_ne!(long, tool_name("github", &"x".repeat(101)));
}
