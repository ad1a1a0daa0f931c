//! Finds numbers in a JSON text that a value cannot hold: integers beyond 64 bits. The JSON parser
//! would round them to the nearest floating-point number, without an error. And finds integers that
//! JavaScript cannot hold: all its numbers are floating-point numbers.

use serde_json::{Number, Value};

use crate::Violation;

/// The most characters of a number in a message.
const SHOWN: usize = 40;
/// An integer with fewer digits fits into 64 bits.
const LONG: usize = 19;

/// Refuses the first integer beyond 64 bits, with its path in the text. The text must be valid
/// JSON; of another text, any result is possible.
pub fn check_numbers(json: &[u8]) -> Result<(), Violation> {
    // Few texts have so many digits in a row, so few are read in full.
    if !has_long_number(json) {
        return Ok(());
    }
    let mut reader = Reader { json, at: 0, path: Vec::new() };
    match reader.first_inexact() {
        None => Ok(()),
        Some(number) => {
            let shown: String = number.chars().take(SHOWN).collect();
            let dots = if number.len() > SHOWN { "…" } else { "" };
            let message = format!("is the number {shown}{dots}, which has more than 64 bits; send it as a string");
            Err(Violation::new(reader.path(), message))
        }
    }
}

/// Refuses the first integer that becomes another number in JavaScript, with its path in the value.
pub fn check_javascript_numbers(value: &Value) -> Result<(), Violation> {
    let Some((path, number)) = first_rounded(value) else { return Ok(()) };
    let rounded = number.as_f64().unwrap_or_default();
    let message = format!("is the integer {number}, which JavaScript rounds to {rounded}; send it as a string");
    Err(Violation::new(path, message))
}

fn first_rounded(value: &Value) -> Option<(String, &Number)> {
    match value {
        Value::Number(number) if is_rounded(number) => Some((String::new(), number)),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            let (rest, number) = first_rounded(item)?;
            Some((joined(&format!("[{index}]"), &rest), number))
        }),
        Value::Object(fields) => fields.iter().find_map(|(key, field)| {
            let (rest, number) = first_rounded(field)?;
            Some((joined(key, &rest), number))
        }),
        _ => None,
    }
}

fn joined(step: &str, rest: &str) -> String {
    let dot = if rest.is_empty() || rest.starts_with('[') { "" } else { "." };
    format!("{step}{dot}{rest}")
}

fn is_rounded(number: &Number) -> bool {
    let integer = number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from));
    integer.is_some_and(|integer| integer as f64 as i128 != integer)
}

/// A run of `LONG` digits has one at a multiple of `LONG`, so only these bytes are examined.
fn has_long_number(json: &[u8]) -> bool {
    (0..json.len()).step_by(LONG).any(|at| {
        let (before, from) = json.split_at(at);
        let from = digits(from.iter());
        from > 0 && digits(before.iter().rev()) + from >= LONG
    })
}

/// How many of the next bytes are digits, up to `LONG`.
fn digits<'j>(json: impl Iterator<Item = &'j u8>) -> usize {
    json.take(LONG).take_while(|byte| byte.is_ascii_digit()).count()
}

/// A step of the path: the range of a key's text with its quotes, or an index.
enum PathStep {
    Key(usize, usize),
    Index(usize),
}

struct Reader<'j> {
    json: &'j [u8],
    at: usize,
    path: Vec<PathStep>,
}

impl Reader<'_> {
    fn first_inexact(&mut self) -> Option<String> {
        while let Some(byte) = self.json.get(self.at) {
            match byte {
                b'"' => self.string(),
                b'{' => self.open(PathStep::Key(0, 0)),
                b'[' => self.open(PathStep::Index(0)),
                b'}' | b']' => {
                    self.path.pop();
                    self.at += 1;
                }
                b',' => {
                    if let Some(PathStep::Index(index)) = self.path.last_mut() {
                        *index += 1;
                    }
                    self.at += 1;
                }
                b'-' | b'0'..=b'9' => {
                    let number = self.number();
                    if !is_exact(&number) {
                        return Some(number);
                    }
                }
                _ => self.at += 1,
            }
        }
        None
    }

    fn open(&mut self, step: PathStep) {
        self.path.push(step);
        self.at += 1;
    }

    /// Skips a string, and remembers it if it is a key.
    fn string(&mut self) {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.json.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => break,
                _ => {}
            }
        }
        let end = self.at.min(self.json.len());
        let next = self.json[end..].iter().find(|byte| !byte.is_ascii_whitespace());
        if next == Some(&b':')
            && let Some(PathStep::Key(from, to)) = self.path.last_mut()
        {
            (*from, *to) = (start, end);
        }
    }

    fn number(&mut self) -> String {
        let rest = &self.json[self.at..];
        let is_part = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E');
        let length = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        self.at += length;
        String::from_utf8_lossy(&rest[..length]).into_owned()
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.path {
            match step {
                PathStep::Index(index) => {
                    path.push('[');
                    path.push_str(&index.to_string());
                    path.push(']');
                }
                PathStep::Key(from, to) => {
                    let key: String = serde_json::from_slice(&self.json[*from..*to]).unwrap_or_default();
                    if !path.is_empty() {
                        path.push('.');
                    }
                    path.push_str(&key);
                }
            }
        }
        path
    }
}

/// Whether the number's integer fits into 64 bits. A number with an exponent is a floating-point
/// number by intention.
fn is_exact(number: &str) -> bool {
    if number.contains(['e', 'E']) {
        return true;
    }
    let integer = number.split('.').next().unwrap_or_default();
    integer.parse::<i64>().is_ok() || integer.parse::<u64>().is_ok()
}
