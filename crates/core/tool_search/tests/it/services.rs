use rcrt_breadcrumb::Registration;
use rcrt_tool_search::{FoundService, MAX_SERVICES, ServiceKind, ServiceRecords, ToolSearch};

use crate::{question, search_of, tool};

fn services(search: &ToolSearch, text: &str) -> Vec<FoundService> {
    search.services(&question(text), |_| true, &ServiceRecords::default(), MAX_SERVICES)
}

fn with_tags(mut tool: Registration, tags: &[&str]) -> Registration {
    tool.tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
    tool
}

#[test]
fn tools_are_grouped_by_server_category_and_source() {
    let search = search_of([
        tool("forge__create_issue", "mcp:forge", "Opens an issue. Also with labels.", &[]),
        tool("forge__list_issues", "mcp:forge", "Lists issues.", &[]),
        tool("forge__merge", "mcp:forge", "Merges branches.", &[]),
        tool("forge__star", "mcp:forge", "Stars a repository.", &[]),
        with_tags(tool("read_file", "native", "Reads a file.", &[]), &["tool", "category:files"]),
        with_tags(tool("unzip", "sandbox", "Unpacks an archive of files.", &[]), &["category:files"]),
        tool("greet", "sandbox", "Says hello.", &[]),
    ]);
    let found = services(&search, "list the issues");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].id.as_str(), found[0].kind), ("forge", ServiceKind::Mcp));
    let top = found[0].top_tools.clone().unwrap();
    assert_eq!(top[..2], ["forge__list_issues", "forge__create_issue"]);
    assert_eq!(top.len(), 3, "others fill up");
    assert!(found[0].summary.starts_with("4 tools: Opens an issue. Lists issues."), "{}", found[0].summary);
    assert!(found[0].top_skills.is_none());

    let found = services(&search, "unpack an archive");
    assert_eq!((found[0].id.as_str(), found[0].kind), ("files", ServiceKind::Family));
    assert_eq!(found[0].top_tools.as_deref().unwrap(), ["unzip", "read_file"]);
    assert_eq!(services(&search, "say hello")[0].id, "sandbox");
    // By its name alone.
    assert_eq!(services(&search, "forge")[0].id, "forge");
    assert!(services(&search, "xylophone").is_empty());
}

#[test]
fn a_service_whose_tools_cannot_be_called_is_not_found() {
    let search = search_of([
        tool("forge__create_issue", "mcp:forge", "Opens an issue.", &[]),
        tool("tickets__create_issue", "mcp:tickets", "Opens an issue.", &[]),
    ]);
    let may_call = |tool: &Registration| tool.source.to_string() == "mcp:tickets";
    let found = search.services(&question("open an issue"), may_call, &ServiceRecords::default(), MAX_SERVICES);
    assert_eq!(found.iter().map(|one| one.id.as_str()).collect::<Vec<_>>(), ["tickets"]);
    assert!(search.services(&question("forge"), may_call, &ServiceRecords::default(), MAX_SERVICES).is_empty());
}

#[test]
fn at_most_five_services_are_found_and_texts_are_one_clean_line() {
    let all = (0..9).map(|number| {
        let description = format!("Sends mail\u{7}\n\u{202e}number {number}. {}", "and more ".repeat(100));
        tool(&format!("mail{number}__send"), &format!("mcp:mail{number}"), &description, &[])
    });
    let found = services(&search_of(all), "send mail");
    assert_eq!(found.len(), MAX_SERVICES);
    for one in found {
        assert!(one.summary.chars().count() <= 300 && !one.summary.contains(['\n', '\u{7}', '\u{202e}']));
        assert!((0.0..=1.0).contains(&one.relevance_score));
    }
}

#[test]
fn short_texts_are_not_worth_hints() {
    for (text, is_worth) in [("thank you", false), ("  ok  ", false), ("book a flight", true)] {
        assert_eq!(question(text).is_worth_hints(), is_worth, "{text}");
    }
}
