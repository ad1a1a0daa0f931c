//! The tables of attacks, and what must come of each.

use super::agents::{Answer, Asked};
use super::{answers, cards, streams, tasks};

pub struct Attack {
    /// The agent's name and its path. That of an agent that sends updates begins with `stream-`.
    pub name: &'static str,
    pub answer: fn(&Asked) -> Answer,
    pub ending: Ending,
    /// It never finishes what it begins, so its requests get a short time.
    pub is_endless: bool,
}

/// What comes of an agent, and of a message to it.
#[derive(Clone, Copy)]
pub enum Ending {
    /// It is not registered, and the failure has this text.
    Unknown(&'static str),
    /// The gate does not let the message out.
    Refused,
    /// The task fails, and says this.
    Fails(&'static str),
    /// The result has this text.
    Returns(&'static str),
    /// There is a result.
    Completes,
    /// The task has a question.
    Asks,
    /// Its other card waits, and the message goes where the accepted card says.
    Changed,
}

pub const fn attack(name: &'static str, answer: fn(&Asked) -> Answer, ending: Ending) -> Attack {
    Attack { name, answer, ending, is_endless: false }
}

pub const fn endless(name: &'static str, answer: fn(&Asked) -> Answer, ending: Ending) -> Attack {
    Attack { name, answer, ending, is_endless: true }
}

pub fn all() -> impl Iterator<Item = &'static Attack> {
    [cards::CARDS, answers::ANSWERS, streams::STREAMS, tasks::TASKS].into_iter().flatten()
}
