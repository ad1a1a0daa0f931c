//! Rules by system call number. A call with several rules matches if one of them does.

use std::collections::BTreeMap;

use seccompiler::{SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompRule};

pub type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// A condition on an argument, by its index from 0.
#[derive(Clone, Copy)]
pub enum Argument {
    /// The lower 32 bits, which the kernel reads of an `int`.
    Is(u8, u32),
    IsNot(u8, u32),
    /// All 64 bits: pointers and flags of that width.
    IsWide(u8, u64),
    IsNotWide(u8, u64),
    /// Of the bits in the first value, exactly those in the second are set (lower 32 bits).
    HasOf(u8, u32, u32),
}

impl Argument {
    fn condition(self) -> Result<SeccompCondition, String> {
        use SeccompCmpArgLen::{Dword, Qword};
        let (number, width, operator, value) = match self {
            Self::Is(number, value) => (number, Dword, SeccompCmpOp::Eq, u64::from(value)),
            Self::IsNot(number, value) => (number, Dword, SeccompCmpOp::Ne, u64::from(value)),
            Self::IsWide(number, value) => (number, Qword, SeccompCmpOp::Eq, value),
            Self::IsNotWide(number, value) => (number, Qword, SeccompCmpOp::Ne, value),
            Self::HasOf(number, of, bits) => (number, Dword, SeccompCmpOp::MaskedEq(u64::from(of)), u64::from(bits)),
        };
        SeccompCondition::new(number, width, operator, value).map_err(|error| error.to_string())
    }
}

/// Matches the calls with any arguments.
pub fn always(calls: &[i64]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

/// Adds a rule: the call matches if all conditions do.
pub fn when(rules: &mut Rules, call: i64, arguments: &[Argument]) -> Result<(), String> {
    let conditions: Result<Vec<_>, String> = arguments.iter().map(|argument| argument.condition()).collect();
    let rule = SeccompRule::new(conditions?).map_err(|error| error.to_string())?;
    rules.entry(call).or_default().push(rule);
    Ok(())
}
