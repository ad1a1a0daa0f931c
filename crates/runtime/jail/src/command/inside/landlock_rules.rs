//! A second layer of file protection: read-only paths cannot be opened for writing, whatever the
//! mounts allow, and no process or socket outside is reachable by name.

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr, RulesetCreatedAttr,
    RulesetStatus, Scope,
};

use crate::command::FilesystemView;

/// The newest Landlock ABI that this code supports. An older kernel applies the part that it
/// supports.
const NEWEST: ABI = ABI::V6;
/// Folders with full access, in addition to the writable folders of the view.
const OWN: [&str; 2] = ["/tmp", "/dev/shm"];

pub fn restrict(view: &FilesystemView) -> Result<(), String> {
    let status = restricted(view).map_err(|error| error.to_string())?;
    if status == RulesetStatus::NotEnforced {
        return Err("this kernel has no Landlock, or it is disabled".into());
    }
    Ok(())
}

fn restricted(view: &FilesystemView) -> Result<RulesetStatus, Box<dyn std::error::Error>> {
    let read = AccessFs::from_read(NEWEST);
    let all = AccessFs::from_all(NEWEST);
    let device = AccessFs::ReadFile | AccessFs::WriteFile;
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(NEWEST))?
        .create()?
        .add_rule(PathBeneath::new(PathFd::new("/")?, read))?;
    for path in OWN.into_iter().map(std::path::Path::new).chain(view.writable.iter().map(|bind| bind.inside.as_path()))
    {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(path)?, all))?;
    }
    for name in ["null", "zero", "full", "random", "urandom"] {
        rules = rules.add_rule(PathBeneath::new(PathFd::new(format!("/dev/{name}"))?, device))?;
    }
    Ok(rules.restrict_self()?.ruleset)
}
