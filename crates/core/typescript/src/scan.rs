//! Splits a source into the few kinds of tokens that matter for nesting, in one pass and without
//! recursion.
//!
//! If `/` could start a regular expression or divide, and the tokens before do not decide it, the
//! source is refused: a wrong guess would hide code from the count.

use crate::keywords::{CONTINUES, meaning};
use crate::nesting::Refused;

/// Limit on `(` and `[` in one regular expression.
const MAX_PATTERN_BRACKETS: u32 = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TokenKind {
    /// `(`, `[`, `{` or `${`.
    Open,
    Close,
    Semicolon,
    Comma,
    LessThan,
    GreaterThan,
    /// `if`, `for`, `while`, `do`, `with`.
    StatementKeyword,
    Else,
    /// A `:` that may follow a label.
    LabelColon,
    /// Any other operator or keyword, and a template.
    Operator,
    /// A name or a literal.
    Operand,
}

#[derive(Debug)]
pub(crate) struct Token {
    pub kind: TokenKind,
    pub offset: usize,
    /// No statement or expression continues from the previous token to this one.
    pub starts_statement: bool,
}

/// What is before the current position. It decides what `/` means and whether a line end ends a
/// statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Before {
    /// An operator, an opening bracket, a keyword, or the start: an expression begins here.
    Expression,
    /// A value has just ended.
    Value,
    /// The `)` of `if (…)`, `for (…)`, `while (…)`, `with (…)`.
    Head,
    /// `}` of a block or of an object.
    Brace,
    /// A word that is a keyword in some places and a name in others; no regular expression follows
    /// it.
    Word,
    /// `of`, `yield`, `await`, `++`, `!` or `>` whose meaning the tokens before do not decide.
    Unclear,
    /// `.`: the next word is a property's name.
    Dot,
}

#[derive(Debug, Clone, Copy)]
enum Bracket {
    Head,
    Paren,
    Square,
    Brace,
    Template,
}

pub(crate) struct Scan<'s> {
    source: &'s str,
    at: usize,
    before: Before,
    /// After the previous word, `(` opens a statement's head.
    head_word: bool,
    /// The previous word is `for`, so `await` may follow.
    for_word: bool,
    /// Set directly after a name: what was before the name.
    name_after: Option<Previous>,
    previous: Previous,
    open: Vec<Bracket>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Previous {
    CommaOrQuestion,
    Other,
}

const UNSURE: &str = "cannot tell whether / divides or starts a regular expression here: put the regular expression \
                      into a constant, or the operand into parentheses";

impl<'s> Scan<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        let after_mark = source.len() - source.trim_start_matches('\u{feff}').len();
        let mut scan = Self {
            source,
            at: after_mark,
            before: Before::Expression,
            head_word: false,
            for_word: false,
            name_after: None,
            previous: Previous::Other,
            open: Vec::new(),
        };
        if scan.rest().starts_with("#!") {
            scan.skip_line();
        }
        scan
    }

    /// The next token, or `None` at the end.
    pub(crate) fn next_token(&mut self) -> Result<Option<Token>, Refused> {
        let new_line = self.skip_space()?;
        let offset = self.at;
        let Some(character) = self.rest().chars().next() else { return Ok(None) };
        let before = self.before;
        let kind = match character {
            'a'..='z' | 'A'..='Z' | '_' | '$' | '#' => return Ok(Some(self.word(new_line))),
            '0'..='9' => self.number(),
            '"' | '\'' => self.string(character)?,
            '`' => {
                self.at += 1;
                self.template()?
            }
            '(' | '[' | '{' => self.open_bracket(character),
            ')' | ']' | '}' => self.close_bracket()?,
            '/' => self.slash()?,
            '\\' => return Err(self.refuse("names with \\u escapes are not accepted: write the character itself")),
            _ if character.is_alphabetic() => return Ok(Some(self.word(new_line))),
            _ if !character.is_ascii() || character.is_ascii_control() => {
                return Err(self.refuse("unexpected character"));
            }
            _ => self.operator(character, new_line)?,
        };
        let name_after = self.name_after.take();
        let kind = match kind {
            TokenKind::Operator if character == ':' && name_after == Some(Previous::Other) => TokenKind::LabelColon,
            other => other,
        };
        self.head_word = false;
        self.for_word = false;
        self.previous = if matches!(character, ',' | '?') { Previous::CommaOrQuestion } else { Previous::Other };
        // A literal on a new line after a value starts a statement only if it is not an operand.
        let starts_statement =
            matches!(kind, TokenKind::Operand) && character != '`' && new_line && before == Before::Value;
        Ok(Some(Token { kind, offset, starts_statement }))
    }

    fn rest(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or("")
    }

    fn refuse(&self, message: &'static str) -> Refused {
        Refused { offset: self.at, message }
    }

    /// Skips white space and comments. Returns whether a line ended.
    fn skip_space(&mut self) -> Result<bool, Refused> {
        let mut new_line = false;
        loop {
            let rest = self.rest();
            let Some(character) = rest.chars().next() else { return Ok(new_line) };
            if character.is_whitespace() || character == '\u{feff}' {
                new_line |= is_line_end(character);
                self.at += character.len_utf8();
            } else if rest.starts_with("//") {
                self.skip_line();
            } else if rest.starts_with("/*") {
                let Some(end) = rest.find("*/") else { return Err(self.refuse("this comment is not closed")) };
                new_line |= rest.get(..end).is_some_and(|comment| comment.contains(is_line_end));
                self.at += end + 2;
            } else {
                return Ok(new_line);
            }
        }
    }

    fn skip_line(&mut self) {
        self.at += self.rest().find(is_line_end).unwrap_or(self.rest().len());
    }

    fn word(&mut self, new_line: bool) -> Token {
        let offset = self.at;
        let rest = self.rest();
        let length = rest
            .char_indices()
            .skip(1)
            .find(|(_, c)| {
                !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || (!c.is_ascii() && c.is_alphabetic()))
            })
            .map_or(rest.len(), |(index, _)| index);
        let word = rest.get(..length).unwrap_or("");
        self.at += length;
        let (kind, before) =
            if self.before == Before::Dot { (TokenKind::Operand, Before::Value) } else { meaning(word) };
        let continues = CONTINUES.contains(&word);
        let starts_statement = !continues
            && match self.before {
                Before::Brace => true,
                Before::Value => new_line,
                _ => false,
            };
        let is_property = self.before == Before::Dot;
        self.head_word =
            !is_property && (matches!(word, "if" | "for" | "while" | "with") || (word == "await" && self.for_word));
        self.for_word = !is_property && word == "for";
        self.name_after = Some(self.previous);
        self.previous = Previous::Other;
        self.before = before;
        Token { kind, offset, starts_statement }
    }

    fn number(&mut self) -> TokenKind {
        // `1..a.b` is the number `1.` and two property accesses.
        self.skip_alphanumeric();
        if self.rest().starts_with('.') {
            self.at += 1;
            self.skip_alphanumeric();
        }
        self.before = Before::Value;
        TokenKind::Operand
    }

    fn skip_alphanumeric(&mut self) {
        let rest = self.rest();
        self.at += rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
    }

    fn string(&mut self, quote: char) -> Result<TokenKind, Refused> {
        let start = self.at;
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((index, character)) = characters.next() {
            match character {
                '\\' => {
                    // `\` and CR LF continue a string as one line end.
                    let escaped = characters.next().map(|(_, escaped)| escaped);
                    let line_feed = self.rest().get(index + 2..).unwrap_or("").starts_with('\n');
                    characters.by_ref().take(usize::from(escaped == Some('\r') && line_feed)).for_each(drop);
                }
                '\n' | '\r' => break,
                _ if character == quote => {
                    self.at = start + index + 1;
                    self.before = Before::Value;
                    return Ok(TokenKind::Operand);
                }
                _ => {}
            }
        }
        Err(self.refuse("this string is not closed on its line"))
    }

    /// Continues inside a template, to its end or to the next `${`.
    fn template(&mut self) -> Result<TokenKind, Refused> {
        let rest = self.rest().as_bytes();
        let mut index = 0;
        while let Some(byte) = rest.get(index) {
            match byte {
                b'\\' => index += 1,
                b'`' => {
                    self.at += index + 1;
                    self.before = Before::Value;
                    return Ok(TokenKind::Operator);
                }
                b'$' if rest.get(index + 1) == Some(&b'{') => {
                    self.at += index + 2;
                    self.before = Before::Expression;
                    self.open.push(Bracket::Template);
                    return Ok(TokenKind::Open);
                }
                _ => {}
            }
            index += 1;
        }
        Err(self.refuse("this template is not closed"))
    }

    fn open_bracket(&mut self, character: char) -> TokenKind {
        self.open.push(match character {
            '(' if self.head_word => Bracket::Head,
            '(' => Bracket::Paren,
            '[' => Bracket::Square,
            _ => Bracket::Brace,
        });
        self.at += 1;
        self.before = Before::Expression;
        TokenKind::Open
    }

    fn close_bracket(&mut self) -> Result<TokenKind, Refused> {
        let closing = self.rest().chars().next();
        let opened = self.open.pop();
        let (expected, before) = match opened {
            Some(Bracket::Head) => (')', Before::Head),
            Some(Bracket::Paren) => (')', Before::Value),
            Some(Bracket::Square) => (']', Before::Value),
            Some(Bracket::Brace | Bracket::Template) => ('}', Before::Brace),
            None => return Err(self.refuse("this closing bracket has no opening one")),
        };
        if closing != Some(expected) {
            return Err(self.refuse("this bracket does not match the one that is open"));
        }
        self.at += 1;
        self.before = before;
        if matches!(opened, Some(Bracket::Template)) {
            // Closing and opening again is the same level: `${a}${b}` does not nest.
            return match self.template()? {
                TokenKind::Open => {
                    self.previous = Previous::Other;
                    Ok(TokenKind::Comma)
                }
                _ => Ok(TokenKind::Close),
            };
        }
        Ok(TokenKind::Close)
    }

    fn slash(&mut self) -> Result<TokenKind, Refused> {
        match self.before {
            Before::Value | Before::Word => {
                self.at += 1;
                self.before = Before::Expression;
                Ok(TokenKind::Operator)
            }
            Before::Expression | Before::Head => self.regular_expression(),
            Before::Brace | Before::Unclear | Before::Dot => Err(self.refuse(UNSURE)),
        }
    }

    fn regular_expression(&mut self) -> Result<TokenKind, Refused> {
        let start = self.at;
        let mut in_class = false;
        let mut ends_line = false;
        let mut brackets = 0;
        let mut characters = self.rest().char_indices().skip(1);
        while let Some((index, character)) = characters.next() {
            // Groups nest, and so do classes: the parser of patterns is recursive too.
            if matches!(character, '(' | '[') {
                brackets += 1;
                if brackets > MAX_PATTERN_BRACKETS {
                    return Err(self.refuse("this regular expression has too many groups and classes: split it"));
                }
            }
            match character {
                _ if ends_line || is_line_end(character) => break,
                '\\' => {
                    let Some((_, escaped)) = characters.next() else { break };
                    // The next round sees the line end, and stops there.
                    ends_line = is_line_end(escaped);
                }
                '[' => in_class = true,
                ']' => in_class = false,
                '/' if !in_class => {
                    self.at = start + index + 1;
                    let flags = self.rest();
                    self.at += flags.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(flags.len());
                    self.before = Before::Value;
                    return Ok(TokenKind::Operand);
                }
                _ => {}
            }
        }
        Err(self.refuse("this regular expression is not closed on its line"))
    }

    fn operator(&mut self, character: char, new_line: bool) -> Result<TokenKind, Refused> {
        let rest = self.rest();
        if rest.starts_with("<!--") || (rest.starts_with("-->") && (new_line || self.at == 0)) {
            return Err(self.refuse("HTML comments are not accepted"));
        }
        let after_value = matches!(self.before, Before::Value | Before::Word) && !new_line;
        let (length, before) = if rest.starts_with("++") || rest.starts_with("--") {
            (2, if after_value { Before::Value } else { Before::Unclear })
        } else if rest.starts_with("=>") {
            (2, Before::Expression)
        } else {
            let before = match character {
                '.' if rest.get(1..).is_some_and(|more| more.starts_with(|c: char| c.is_ascii_digit())) => {
                    return Ok(self.number());
                }
                '.' if rest.starts_with("...") => Before::Expression,
                '.' => Before::Dot,
                '!' if rest.starts_with("!=") => Before::Expression,
                '!' => match self.before {
                    Before::Value | Before::Word if !new_line => Before::Value,
                    Before::Expression | Before::Head => Before::Expression,
                    _ => Before::Unclear,
                },
                '>' => Before::Unclear,
                _ => Before::Expression,
            };
            let length = if rest.starts_with("...") { 3 } else { 1 };
            (length, before)
        };
        self.at += length;
        self.before = before;
        Ok(match character {
            ';' => TokenKind::Semicolon,
            ',' => TokenKind::Comma,
            '<' => TokenKind::LessThan,
            '>' => TokenKind::GreaterThan,
            _ => TokenKind::Operator,
        })
    }
}

fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
