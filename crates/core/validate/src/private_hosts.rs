//! The rules for the private hosts that an operator allows. The egress gate checks host and port
//! again at each request of the tool.

use rcrt_breadcrumb::{HostEntry, NetPermission, PrivateHost, ToolDefinition};

use crate::permissions::check_net;
use crate::tool::tool_as;
use crate::{Author, Finding, Report};

/// Validates a tool as a runner with these `--allow-private-host` does: a private host that the
/// operator allowed is not an error.
pub fn tool_allowing(definition: &ToolDefinition, author: Author, allowed: &[PrivateHost]) -> Report {
    let mut report = tool_as(definition, author);
    // An included tool waits for its private hosts.
    let waits = |finding: &Finding| author == Author::System && private_host(finding, definition).is_some();
    report.errors.retain(|finding| !waits(finding) && !is_allowed(finding, definition, allowed));
    report
}

/// The same for a tool that a curator writes. It waits for its private hosts, so these are
/// warnings.
pub fn curators_tool_allowing(definition: &ToolDefinition, allowed: &[PrivateHost]) -> Report {
    let closed = closed_hosts(definition, allowed);
    let mut report = tool_allowing(definition, Author::User, &[allowed, &closed[..]].concat());
    report.warnings.extend(closed.iter().map(|host| {
        let message = format!(
            "the host {} is private: the tool waits until the operator allows it with --allow-private-host {host}",
            host.entry
        );
        Finding::new("net-host", "permissions.net", message)
    }));
    report
}

/// The private hosts that the tool names and the operator has not allowed.
pub fn closed_hosts(definition: &ToolDefinition, allowed: &[PrivateHost]) -> Vec<PrivateHost> {
    let mut report = Report::default();
    check_net(definition, Author::System, &mut report);
    let refused = report.errors.iter().filter(|finding| !is_allowed(finding, definition, allowed));
    let hosts = refused.filter_map(|finding| private_host(finding, definition));
    hosts.map(|entry| PrivateHost { tool: Some(definition.name.clone()), entry }).collect()
}

fn is_allowed(finding: &Finding, definition: &ToolDefinition, allowed: &[PrivateHost]) -> bool {
    let asked = private_host(finding, definition);
    asked.is_some_and(|asked| allowed.iter().any(|host| host.allows_entry(&definition.name, &asked)))
}

/// The host that a finding refuses because it is private. `None` for other findings, and for an
/// entry that is not a host.
fn private_host(finding: &Finding, definition: &ToolDefinition) -> Option<HostEntry> {
    let NetPermission::Listed(hosts) = &definition.permissions.net else { return None };
    let index = finding.field.strip_prefix("permissions.net[").and_then(|rest| rest.strip_suffix(']'))?;
    let host = hosts.get(index.parse::<usize>().ok()?)?;
    HostEntry::parse(host).ok().filter(|_| finding.rule == "net-host")
}
