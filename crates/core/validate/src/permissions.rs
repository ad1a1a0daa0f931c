//! Rules for the permissions that a tool asks for.

use rcrt_breadcrumb::{AccessList, ToolDefinition};

use crate::builtin::is_builtin;
use crate::host;
use crate::{Author, Finding, Report};

/// The maximum number of hosts that one tool of a user can name.
const MAX_DOMAINS: usize = 5;
/// The maximum number of other tools that one tool can name.
const MAX_TOOLS: usize = 100;

pub(crate) fn check(definition: &ToolDefinition, author: Author, report: &mut Report) {
    let permissions = &definition.permissions;
    check_net(definition, author, report);
    if let AccessList::Listed(tools) = &permissions.tools {
        check_tools(tools, report);
    }
    let asked = [
        ("read", permissions.read.is_granted(), "files: keep data in breadcrumbs, through context.api"),
        ("write", permissions.write.is_granted(), "files: keep data in breadcrumbs, through context.api"),
        ("run", permissions.run.is_granted(), "other programs: write the work in the tool, or call a service by fetch"),
        ("ffi", permissions.ffi.is_granted(), "native libraries: write the work in the tool"),
    ];
    for (name, is_granted, instead) in asked {
        if is_granted {
            let finding = Finding::new(
                "forbidden-permission",
                format!("permissions.{name}"),
                format!("cannot be granted, because tools have no access to {instead}; set it to false"),
            );
            match author {
                Author::User => report.error(finding),
                Author::System => report.warning(finding),
            }
        }
    }
    if permissions.hrtime {
        let message = "opens clocks finer than a millisecond, with which code can spy on other calls; set it to false";
        let finding = Finding::new("forbidden-permission", "permissions.hrtime", message);
        match author {
            Author::User => report.error(finding),
            Author::System => report.warning(finding),
        }
    }
    if permissions.env.is_granted() {
        let message = "has no effect: a sandbox has no environment; name what the tool needs in required_secrets";
        report.warning(Finding::new("env-permission", "permissions.env", message));
    }
}

fn check_tools(tools: &[String], report: &mut Report) {
    if tools.len() > MAX_TOOLS {
        let message = format!("names {} tools; at most {MAX_TOOLS} are allowed", tools.len());
        report.error(Finding::new("tools-permission", "permissions.tools", message));
    }
    for (index, name) in tools.iter().enumerate().take(MAX_TOOLS) {
        let message = match name.as_str() {
            "*" => "is not the name of a tool; set permissions.tools to true for every tool",
            name if name.trim().is_empty() || name.chars().count() > 200 => "must be the name of a tool",
            _ => continue,
        };
        let shown: String = name.chars().take(80).collect();
        report.error(Finding::new(
            "tools-permission",
            format!("permissions.tools[{index}]"),
            format!("{shown:?} {message}"),
        ));
    }
}

pub(crate) fn check_net(definition: &ToolDefinition, author: Author, report: &mut Report) {
    match &definition.permissions.net {
        AccessList::None => {}
        // The code of a builtin tool is trusted, so open access needs no warning.
        AccessList::All if is_builtin(definition) => {}
        AccessList::All => {
            let message = "opens every public host: list the hosts that the tool needs";
            report.warning(Finding::new("net-open", "permissions.net", message));
        }
        AccessList::Listed(hosts) => {
            if hosts.len() > MAX_DOMAINS && author == Author::User {
                let message = format!("names {} hosts; at most {MAX_DOMAINS} are allowed", hosts.len());
                report.error(Finding::new("net-too-many", "permissions.net", message));
            }
            for (index, entry) in hosts.iter().enumerate().take(100) {
                if let Err(message) = host::check(entry) {
                    let shown: String = entry.chars().take(80).collect();
                    let field = format!("permissions.net[{index}]");
                    report.error(Finding::new("net-host", field, format!("{shown:?} {message}")));
                }
            }
        }
    }
}
