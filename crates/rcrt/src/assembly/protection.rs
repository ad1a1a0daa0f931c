//! The lines of the start-up log about the protections around tools.

use sandbox::{Level, ProtectionState, Report};

/// One line for what stands, one for what does not, and a loud one where the operator lowered the bar.
pub fn tell(report: &Report) {
    let (mut standing, mut absent) = (Vec::new(), Vec::new());
    for protection in &report.protections {
        match &protection.state {
            ProtectionState::Applied => standing.push(protection.name.as_str()),
            ProtectionState::Unavailable(reason) => absent.push(format!("{} ({reason})", protection.name)),
        }
    }
    let (level, engine) = (report.level, &report.engine_version);
    tracing::info!(%level, engine = format!("V8 {engine}"), in_force = standing.join(", "), "tools run in a sandbox");
    if !absent.is_empty() {
        tracing::warn!(
            absent = absent.join("; "),
            "protections that this machine does not give; `rcrt doctor` says which are required"
        );
    }
    if level == Level::Minimal {
        let missing: Vec<String> =
            report.missing().into_iter().map(|(name, reason)| format!("{name} ({reason})")).collect();
        if missing.is_empty() {
            tracing::warn!(
                "--sandbox minimal: nothing that is required is missing here, so strict would start too; leave the option away"
            );
        } else {
            tracing::warn!(
                missing = missing.join("; "),
                "SANDBOX LOWERED by --sandbox minimal: tools run WITHOUT required protections; run no stranger's tool here"
            );
        }
    }
}
