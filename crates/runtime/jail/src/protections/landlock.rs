//! Prevents opening files and TCP ports, whatever the process's user can do: a Landlock ruleset
//! that handles every right that this kernel knows and grants none.

use landlock::{ABI, Access, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus, Scope};

/// The newest Landlock ABI that this code supports. An older kernel applies the part that it
/// supports.
const NEWEST: ABI = ABI::V6;

pub fn apply() -> Result<(), String> {
    let status = restrict().map_err(|error| error.to_string())?;
    match status {
        RulesetStatus::NotEnforced => Err("this kernel has no Landlock, or it is disabled".into()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

fn restrict() -> Result<RulesetStatus, landlock::RulesetError> {
    let ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    Ok(ruleset.restrict_self()?.ruleset)
}
