//! Which versions of runners and servers work together: a number that a runner sends with each
//! claim.
//!
//! It grows only with a change that one of them would misunderstand. Other changes do not need it:
//! what is new in a response is ignored by older runners, and a runner sends a new field only when
//! its value matters.

use crate::Violations;

/// The header with the number. A claim without it comes from a program that knows the oldest.
pub const RUNNER_PROTOCOL_HEADER: &str = "rcrt-runner-protocol";
/// The number of this version.
pub const RUNNER_PROTOCOL: u32 = 1;
/// The oldest number with which a server of this version works: that of the version before.
pub const OLDEST_RUNNER_PROTOCOL: u32 = 1;

/// Refuses the claim of a runner that would misunderstand this server, or this server it. A call
/// that it has already can still be completed.
pub fn check_runner_protocol(sent: Option<&str>) -> Result<(), Violations> {
    let Some(text) = sent else { return Ok(()) };
    let problem = match text.trim().parse::<u32>() {
        Ok(number) if number < OLDEST_RUNNER_PROTOCOL => {
            format!("is {number}, but this server needs at least {OLDEST_RUNNER_PROTOCOL}; upgrade the runner")
        }
        Ok(number) if number > RUNNER_PROTOCOL => {
            let fix = "upgrade the servers before the runners";
            format!("is {number}, but this server knows {RUNNER_PROTOCOL} at most; {fix}")
        }
        Ok(_) => return Ok(()),
        Err(_) => "must be a whole number".to_owned(),
    };
    Err(Violations::one(RUNNER_PROTOCOL_HEADER, problem))
}
