//! An upper bound on the nesting depth of a source. It is found without recursion, before a
//! recursive parser sees the source.
//!
//! The bound counts, for each open bracket, the operators and statement keywords since the last
//! point where a statement or list item certainly ended. It allows ordinary code and is never less
//! than the real depth. If the scan cannot be sure how a parser would read the text, it refuses the
//! text.

use crate::scan::{Scan, Token, TokenKind};

/// Deeper sources are not parsed. Engines give up far earlier.
pub(crate) const MAX_NESTING: u64 = 3000;

/// Why a source is refused before it is parsed, and the byte offset.
#[derive(Debug)]
pub(crate) struct Refused {
    pub offset: usize,
    pub message: &'static str,
}

const TOO_DEEP: &str = "the code is nested too deeply, or one statement is too long: end statements with ; and split \
                        long expressions";

/// What can nest within one pair of brackets.
#[derive(Debug, Clone, Copy, Default)]
struct Level {
    /// Operators since the last `,` or end of a statement.
    operators: u64,
    /// `if`, `else`, `for` and labels since the last end of a statement: a `,` does not end these.
    statements: u64,
    /// `<` that may open type argument lists: a `,` may belong to one of them.
    angles: u64,
    has_else: bool,
    /// A statement may have ended here, unless `else` follows.
    ended: bool,
}

impl Level {
    fn weight(self) -> u64 {
        self.operators + self.statements + self.angles + 1
    }
}

pub(crate) fn check(source: &str) -> Result<(), Refused> {
    let mut scan = Scan::new(source);
    let mut outer: Vec<Level> = Vec::new();
    let mut outer_weight = 0;
    let mut level = Level::default();
    while let Some(token) = scan.next_token()? {
        settle_statement_end(&mut level, &token);
        match token.kind {
            TokenKind::Open => {
                level.operators += 1;
                outer_weight += level.weight();
                outer.push(std::mem::take(&mut level));
            }
            TokenKind::Close => {
                level = outer.pop().unwrap_or_default();
                outer_weight -= level.weight().min(outer_weight);
            }
            TokenKind::Semicolon => level.ended = true,
            TokenKind::Comma => {
                if !level.has_else && level.angles == 0 {
                    level.operators = 0;
                }
            }
            TokenKind::StatementKeyword | TokenKind::LabelColon => level.statements += 1,
            TokenKind::LessThan => level.angles += 1,
            TokenKind::Else => {
                level.statements += 1;
                level.has_else = true;
            }
            // Closes a type argument list. If it is a comparison, no `<` of a list is open.
            TokenKind::GreaterThan => {
                level.angles = level.angles.saturating_sub(1);
                level.operators += 1;
            }
            TokenKind::Operator => level.operators += 1,
            TokenKind::Operand => {}
        }
        if outer_weight + level.weight() > MAX_NESTING {
            return Err(Refused { offset: token.offset, message: TOO_DEEP });
        }
    }
    Ok(())
}

fn settle_statement_end(level: &mut Level, token: &Token) {
    let ends = level.ended || token.starts_statement;
    if ends && token.kind != TokenKind::Else {
        *level = Level::default();
    }
    level.ended = false;
}
