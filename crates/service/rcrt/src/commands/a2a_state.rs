//! What `rcrt a2a` and `rcrt doctor` say about an agent.

use rcrt_a2a::{AgentRecord, KnownAgent, PinnedCard};
use serde_json::json;

use super::tool_diff::{print_line, unified};
use crate::output::{Output, Style, one_line, printable_lines};

fn state(agent: &AgentRecord) -> &'static str {
    match (&agent.problem, &agent.pending) {
        (Some(_), _) => "unreachable",
        (None, Some(_)) => "card waits",
        (None, None) => "known",
    }
}

pub(super) fn row(known: &KnownAgent) -> Vec<String> {
    let agent = &known.agent;
    vec![
        agent.name.clone(),
        state(agent).to_owned(),
        agent.card.skills.len().to_string(),
        agent.last_seen.format("%Y-%m-%d %H:%M").to_string(),
        one_line(&agent.card.interface.url, 100),
    ]
}

/// One line for `rcrt doctor`.
pub(super) fn line(output: Output, known: &KnownAgent) -> String {
    let AgentRecord { name, problem, pending, card, .. } = &known.agent;
    let shown = match problem {
        None => output.paint(Style::Good, "its card was read"),
        Some(problem) => {
            format!("{}; {}", output.paint(Style::Bad, "its card cannot be read"), one_line(problem, 200))
        }
    };
    let waits = match pending {
        None => String::new(),
        Some(_) => {
            let text = format!("a changed card waits (`rcrt a2a diff {name:?}`)");
            format!("; {}", output.paint(Style::Warning, &text))
        }
    };
    format!("{name}: {shown}, {} skills{waits}", card.skills.len())
}

pub(super) fn print(output: Output, known: &KnownAgent) -> anyhow::Result<()> {
    let field = |name: &str, value: &str| output.line(&format!("{name:<14}{}", one_line(value, 2000)));
    let agent = &known.agent;
    field("name", &agent.name)?;
    field("record", &known.id.to_string())?;
    field("state", state(agent))?;
    if let Some(problem) = &agent.problem {
        field("problem", problem)?;
    }
    field("card", &agent.card_url)?;
    field("last seen", &agent.last_seen.to_rfc3339())?;
    if agent.well_known {
        field("well known", "it is in the operator's file")?;
    }
    if let Some(auth) = &agent.auth {
        field("secret", &format!("{} as {}", auth.secret, auth.header))?;
    }
    let PinnedCard { description, version, interface, streaming, skills, .. } = &agent.card;
    field("version", version)?;
    field("description", description)?;
    field("url", &format!("{} ({})", interface.url, interface.binding))?;
    field("streaming", if *streaming { "yes" } else { "no" })?;
    for skill in skills {
        field("skill", &format!("{}: {}", skill.id, skill.description))?;
    }
    if agent.pending.is_some() {
        field("changed card", &format!("waits; see `rcrt a2a diff {:?}`", agent.name))?;
    }
    Ok(())
}

/// The texts of strangers in both cards, line by line.
pub(super) fn print_difference(output: Output, agent: &AgentRecord, pending: &PinnedCard) -> anyhow::Result<()> {
    let bold = |text: String| output.line(&output.paint(Style::Bold, &text));
    bold(format!("--- {} (accepted {:.12})", agent.name, agent.card.card_hash))?;
    bold(format!("+++ {} (waits, {:.12})", agent.name, pending.card_hash))?;
    let text = |card: &PinnedCard| {
        let PinnedCard { description, version, interface, streaming, push, skills, .. } = card;
        let shown = json!({"version": version, "description": description, "interface": interface,
            "streaming": streaming, "push": push, "skills": skills});
        serde_json::to_string_pretty(&shown).unwrap_or_default()
    };
    let lines = unified(&text(&agent.card), &text(pending));
    if lines.is_empty() {
        return output.line("only fields that this runtime does not use differ");
    }
    printable_lines(&lines.join("\n")).try_for_each(|line| print_line(output, &line))
}
