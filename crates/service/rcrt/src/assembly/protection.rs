//! The protections around tools: logged at the start, and announced by the runner.

use rcrt_runner::{AbsentProtection, Protections};
use rcrt_sandbox::{Level, ProtectionState, Report};

/// Logs the protections in force, the unavailable ones, and a prominent warning if `--sandbox
/// minimal` lowered the protection.
pub fn log(report: &Report) {
    let (mut in_force, mut absent) = (Vec::new(), Vec::new());
    for protection in &report.protections {
        match &protection.state {
            ProtectionState::Applied => in_force.push(protection.name.as_str()),
            ProtectionState::Unavailable(reason) => absent.push(format!("{} ({reason})", protection.name)),
        }
    }
    let (level, engine) = (report.level, &report.engine_version);
    tracing::info!(%level, engine = format!("V8 {engine}"), in_force = in_force.join(", "), "tools run in a sandbox");
    if !absent.is_empty() {
        tracing::warn!(
            absent = absent.join("; "),
            "protections that are not available on this machine; `rcrt doctor` shows which are required"
        );
    }
    if level == Level::Minimal {
        let missing: Vec<String> =
            report.missing().into_iter().map(|(name, reason)| format!("{name} ({reason})")).collect();
        if missing.is_empty() {
            tracing::warn!(
                "--sandbox minimal: no required protection is missing, so strict would start too; remove the option"
            );
        } else {
            tracing::warn!(
                missing = missing.join("; "),
                "SANDBOX LOWERED by --sandbox minimal: tools run WITHOUT required protections; run only tools that you trust"
            );
        }
    }
}

/// For the announcement of the runner.
pub fn announced(report: &Report) -> Protections {
    let (mut in_force, mut absent) = (Vec::new(), Vec::new());
    for protection in &report.protections {
        let name = protection.name.clone();
        match &protection.state {
            ProtectionState::Applied => in_force.push(name),
            ProtectionState::Unavailable(reason) => absent.push(AbsentProtection { name, reason: reason.clone() }),
        }
    }
    Protections { level: report.level.to_string(), in_force, absent }
}
