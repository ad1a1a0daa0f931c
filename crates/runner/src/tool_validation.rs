//! Validates a tool, where an operator has allowed some private hosts.

use breadcrumb::{HostEntry, NetPermission, ToolDefinition};
use executors::egress::PrivateHost;
use validate::{Author, Finding, Report};

/// Validates a tool as a runner with these `--allow-private-host` does: a finding about a host that
/// the operator allowed is dropped. The validator knows no operator; the egress gate checks again,
/// host and port, whenever the tool fetches.
pub fn validate_tool(definition: &ToolDefinition, author: Author, allowed: &[PrivateHost]) -> Report {
    let mut report = validate::tool_as(definition, author);
    report.errors.retain(|finding| !is_allowed(finding, definition, allowed));
    report
}

fn is_allowed(finding: &Finding, definition: &ToolDefinition, allowed: &[PrivateHost]) -> bool {
    let NetPermission::Listed(hosts) = &definition.permissions.net else { return false };
    let index = finding.field.strip_prefix("permissions.net[").and_then(|rest| rest.strip_suffix(']'));
    let host = index.and_then(|index| hosts.get(index.parse::<usize>().ok()?));
    let Some(asked) = host.and_then(|host| HostEntry::parse(host).ok()) else { return false };
    finding.rule == "net-host" && allowed.iter().any(|host| host.allows_entry(&definition.name, &asked))
}
