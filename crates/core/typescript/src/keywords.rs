//! The keywords that the scan needs.

use crate::scan::{Before, TokenKind};

/// Words that continue the previous statement, even on a new line or after a `}`.
pub(crate) const CONTINUES: &[&str] = &[
    "as",
    "catch",
    "else",
    "extends",
    "finally",
    "from",
    "implements",
    "in",
    "instanceof",
    "is",
    "of",
    "satisfies",
    "while",
];

/// The token kind of a word, and the state of the scan after it.
pub(crate) fn meaning(word: &str) -> (TokenKind, Before) {
    match word {
        "if" | "for" | "while" | "do" | "with" => (TokenKind::StatementKeyword, Before::Expression),
        "else" => (TokenKind::Else, Before::Expression),
        "return" | "typeof" | "instanceof" | "in" | "void" | "delete" | "throw" | "new" | "case" | "default"
        | "extends" | "break" | "continue" | "debugger" => (TokenKind::Operator, Before::Expression),
        "of" | "yield" | "await" => (TokenKind::Operator, Before::Unclear),
        "as" | "satisfies" | "is" | "asserts" | "keyof" | "unique" | "readonly" | "infer" | "implements" | "from"
        | "async" | "get" | "set" | "static" | "abstract" | "declare" | "type" | "interface" | "namespace"
        | "module" | "global" | "accessor" | "override" | "using" | "out" | "public" | "private" | "protected"
        | "let" | "const" | "var" | "function" | "class" | "enum" | "export" | "import" | "try" | "finally"
        | "catch" | "switch" => (TokenKind::Operator, Before::Word),
        _ => (TokenKind::Operand, Before::Value),
    }
}
