//! Validates a tool with the private hosts that the operator allows.

use rcrt_breadcrumb::{HostEntry, NetPermission, ToolDefinition};
use rcrt_egress::PrivateHost;
use rcrt_validate::{Author, Finding, Report};

/// Validates a tool as a runner with these `--allow-private-host` does: a finding about a host that
/// the operator allowed is dropped. The validators do not know this setting. The egress gate checks
/// host and port again at each request of the tool.
pub fn validate_tool(definition: &ToolDefinition, author: Author, allowed: &[PrivateHost]) -> Report {
    let mut report = rcrt_validate::tool_as(definition, author);
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
