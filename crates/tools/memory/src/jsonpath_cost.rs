//! Estimates the cost of a JSONPath before it runs: the library cannot be interrupted, and a short
//! path can need more time or memory than is available.

use serde_json::Value;

const MAX_CHARS: usize = 500;
/// The maximum nesting of parentheses and brackets.
const MAX_NESTING: usize = 8;
/// The maximum number of values that a path touches in the worst case.
const MAX_VISITED: usize = 20_000_000;
/// The same for a path that compares each value with a short pattern. A longer one counts several
/// times.
const MOST_COMPARED: usize = 200_000;
const MAX_PATTERN_CHARS: usize = 100;

/// What determines the cost of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cost {
    /// How many descendant segments (`..`) it has.
    descents: usize,
    /// How many times its selectors (`['a', 'b']`) can return the same value.
    selections: usize,
    /// How much the patterns cost for each value, where a short one without classes costs 1.
    patterns: usize,
}

impl Cost {
    /// The error says what is not supported.
    pub fn of(path: &str) -> Result<Self, String> {
        if path.is_empty() || path.chars().count() > MAX_CHARS {
            return Err(format!("must have 1 to {MAX_CHARS} characters, such as $.items[0].name"));
        }
        let mut reader = Reader { cost: Self { descents: 0, selections: 1, patterns: 0 }, open: Vec::new() };
        reader.read(&path.chars().collect::<Vec<_>>())?;
        Ok(reader.cost)
    }

    /// Whether the path can run on this document.
    pub fn allows(&self, document: &Value) -> Result<(), String> {
        let (values, depth) = extent(document);
        let further = u32::try_from(self.descents.saturating_sub(1)).unwrap_or(u32::MAX);
        let touched = values.saturating_mul(depth.saturating_pow(further)).saturating_mul(self.selections);
        if touched > MAX_VISITED {
            return Err("is too expensive for a document of this size; write more steps, or use .. only once".into());
        }
        if touched.saturating_mul(self.patterns) > MOST_COMPARED {
            let what = "compares a pattern with too many values; query a chunk by its key, or a narrower path";
            return Err(format!("{what}, and write [0-9] or [a-z] in place of classes such as \\d"));
        }
        Ok(())
    }
}

struct Reader {
    cost: Cost,
    open: Vec<Bracket>,
}

struct Bracket {
    is_square: bool,
    is_filter: bool,
    commas: usize,
}

impl Reader {
    fn read(&mut self, path: &[char]) -> Result<(), String> {
        let mut at = 0;
        while let Some(character) = path.get(at) {
            let in_filter = self.open.iter().any(|bracket| bracket.is_filter);
            match character {
                '\'' | '"' => {
                    at = end_of_text(path, at);
                    continue;
                }
                '[' | '(' => {
                    self.open.push(Bracket { is_square: *character == '[', is_filter: false, commas: 0 });
                    if self.open.len() > MAX_NESTING {
                        return Err(format!("has more than {MAX_NESTING} nested brackets"));
                    }
                    if *character == '(' {
                        self.function(path, at)?;
                    }
                }
                ']' | ')' => {
                    if let Some(bracket) = self.open.pop().filter(|bracket| bracket.is_square) {
                        self.cost.selections = self.cost.selections.saturating_mul(1 + bracket.commas);
                    }
                }
                ',' => {
                    if let Some(bracket) = self.open.last_mut() {
                        bracket.commas += 1;
                        // The next selector of this bracket is a filter only if it starts with `?`.
                        bracket.is_filter = bracket.is_filter && !bracket.is_square;
                    }
                }
                '?' if in_filter => return Err("has a filter in a filter, which is not supported".into()),
                '?' => {
                    if let Some(bracket) = self.open.last_mut() {
                        bracket.is_filter = true;
                    }
                }
                '$' if in_filter => {
                    return Err("has $ in a filter, which is not supported; compare with a value".into());
                }
                '.' if path.get(at + 1) == Some(&'.') => {
                    if in_filter {
                        return Err("has .. in a filter, which is not supported; write each step".into());
                    }
                    self.cost.descents += 1;
                    at += 1;
                }
                _ => {}
            }
            at += 1;
        }
        Ok(())
    }

    /// Patterns are compiled again for each value, so only short literal patterns are allowed.
    fn function(&mut self, path: &[char], open: usize) -> Result<(), String> {
        let name: String = path[..open].iter().rev().take_while(|c| c.is_ascii_lowercase()).collect();
        if !["hctam", "hcraes"].contains(&name.as_str()) {
            return Ok(());
        }
        let wrong = || {
            Err(format!(
                "has a {} whose pattern is not supported: it must be a string literal of at most {MAX_PATTERN_CHARS} characters, \
             without {{",
                name.chars().rev().collect::<String>()
            ))
        };
        let mut depth = 0;
        let mut at = open + 1;
        while let Some(character) = path.get(at) {
            match character {
                '\'' | '"' => {
                    at = end_of_text(path, at);
                    continue;
                }
                '(' | '[' => depth += 1,
                ')' | ']' if depth == 0 => return wrong(),
                ')' | ']' => depth -= 1,
                ',' if depth == 0 => break,
                _ => {}
            }
            at += 1;
        }
        let Some(start) = (at + 1..path.len()).find(|index| !path[*index].is_whitespace()) else { return wrong() };
        if !matches!(path[start], '\'' | '"') {
            return wrong();
        }
        let pattern = &path[start..end_of_text(path, start).min(path.len())];
        if pattern.len() > MAX_PATTERN_CHARS || pattern.contains(&'{') {
            return wrong();
        }
        // Classes such as \w have hundreds of ranges: thirty of them take hundreds of times as long
        // to compile as letters do.
        let escapes = pattern.iter().filter(|character| **character == '\\').count();
        self.cost.patterns += 1 + pattern.len() / 10 + 10 * escapes;
        Ok(())
    }
}

/// The position after the string literal that starts here.
fn end_of_text(path: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while let Some(character) = path.get(at) {
        at += 1;
        match character {
            '\\' => at += 1,
            quote if *quote == path[start] => break,
            _ => {}
        }
    }
    at
}

/// The number of values in a document, and its depth.
fn extent(value: &Value) -> (usize, usize) {
    let inner: Box<dyn Iterator<Item = &Value>> = match value {
        Value::Array(items) => Box::new(items.iter()),
        Value::Object(members) => Box::new(members.values()),
        _ => return (1, 1),
    };
    let (values, depth) =
        inner.map(extent).fold((1, 0), |(values, depth), (more, deep)| (values + more, depth.max(deep)));
    (values, depth + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!([inner, 2]))
    }

    #[test]
    fn ordinary_paths_are_accepted() {
        let document = json!({"items": [{"name": "a", "price": 1}], "it's": 1});
        for path in [
            "$",
            "$.items[*].name",
            "$..name",
            "$.items..name",
            "$..items..name",
            "$['it\\'s','items']",
            "$.items[?@.price > 1 && (@.name == 'a' || @.name == \"?..$\")]",
            "$.items[?search(@.name, '^a.*')]",
            "$.items[?match(@['name'], \"a|b\"), ?@.price]",
            "$.items[?count(@.*) > 1].name",
            "$.items[-1:]",
        ] {
            let cost = Cost::of(path).unwrap_or_else(|error| panic!("{path}: {error}"));
            cost.allows(&document).unwrap_or_else(|error| panic!("{path}: {error}"));
            serde_json_path::JsonPath::parse(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        }
    }

    #[test]
    fn expensive_paths_are_refused() {
        let deep = nested(100);
        for path in [
            "$..*..*..*..*..*",
            "$[0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0]\
                      [0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0][0,0]",
        ] {
            assert!(Cost::of(path).unwrap().allows(&deep).is_err(), "{path}");
        }
        for path in [
            "$[?@[?@.a]]",
            "$[?count($..*) > 1]",
            "$..[?@..a]",
            "$[?search(@.a, @.b)]",
            "$[?search(@.a, 'a{1000}{1000}')]",
            "$[?match(@.a)]",
            "$[?((((((((((1==1))))))))))]",
            "",
        ] {
            assert!(Cost::of(path).is_err(), "{path}");
        }
        let many = Value::Array(vec![json!({"a": "b"}); 200_000]);
        assert!(Cost::of("$[?search(@.a, 'b')]").unwrap().allows(&many).is_err());
        assert!(Cost::of("$[?@.a == 'b']").unwrap().allows(&many).is_ok());
    }

    /// Thirty classes and 12,000 values took minutes, also after the call had timed out.
    #[test]
    fn patterns_with_many_classes_are_for_few_values() {
        let items = Value::Array(vec![json!({"a": "b"}); 3000]);
        let is_allowed = |filter: &str| Cost::of(&format!("$[?{filter}]")).unwrap().allows(&items).is_ok();
        let search = |pattern: &str| format!("search(@.a, '{pattern}')");
        for filter in [search("^b.*9$"), search("[0-9]+"), search(r"\\d+"), search(&"b".repeat(90))] {
            assert!(is_allowed(&filter), "{filter}");
        }
        let both = format!("{} && {}", search(r"\\d+"), search(r"\\w+"));
        for filter in [search(&r"\\w".repeat(30)), search(&r"\u005cw".repeat(14)), search(r"\\d\\d"), both] {
            assert!(!is_allowed(&filter), "{filter}");
        }
    }
}
