//! Makes inputs from a JSON Schema. It prefers the bounds of what the schema allows. An input may
//! not fit the schema; the caller checks it.

use fastrand::Rng;
use rcrt_breadcrumb::Example;
use serde_json::{Map, Value, json};

/// Below this depth, only what is required is made.
const MAX_DEPTH: u32 = 8;
/// The characters of a huge text without a bound, and the items of a huge list.
const HUGE_TEXT: u64 = 100_000;
const HUGE_LIST: u64 = 1000;
/// The largest integer that JavaScript has exactly.
const MAX_INTEGER: i64 = 9_007_199_254_740_991;

/// Texts that programs treat wrongly: spaces, quotes, markup, right-to-left, joined and combining
/// characters, characters outside of the first plane, NUL, names of JavaScript.
const TEXTS: [&str; 14] = [
    "a",
    " ",
    "0",
    "\n\t\r",
    "\"'`\\${}",
    "<b>&amp;</b>",
    "../../etc/passwd",
    "שלום مرحبا",
    "👩‍👩‍👧‍👦🇳🇴",
    "e\u{301}\u{200d}\u{feff}",
    "𝒳\u{10ffff}",
    "a\0b",
    "__proto__",
    "undefined",
];

const ANYTHING: &Value = &Value::Bool(true);
/// The most values of one input.
const MAX_VALUES: u32 = 20_000;

pub(crate) struct Generator<'s> {
    schema: &'s Value,
    examples: &'s [Example],
    random: Rng,
    /// How many values the current input can still have.
    left: u32,
}

impl<'s> Generator<'s> {
    pub fn new(schema: &'s Value, examples: &'s [Example], seed: u64) -> Self {
        Self { schema, examples, random: Rng::with_seed(seed), left: 0 }
    }

    /// The next input: made from the schema, or an example's with one member replaced. The latter
    /// has values that cannot be made, such as those of a pattern.
    pub fn input(&mut self) -> Value {
        self.left = MAX_VALUES;
        let made = self.value(self.schema, 0);
        if self.examples.is_empty() || self.random.u8(0..3) > 0 {
            return made;
        }
        let mut input = self.examples[self.random.usize(0..self.examples.len())].input.clone();
        if let (Value::Object(fields), Value::Object(made)) = (&mut input, made)
            && let Some((name, value)) = self.one_of(made.into_iter().collect())
        {
            fields.insert(name, value);
        }
        input
    }

    fn one_of<T>(&mut self, mut choices: Vec<T>) -> Option<T> {
        if choices.is_empty() { None } else { Some(choices.swap_remove(self.random.usize(0..choices.len()))) }
    }

    fn value(&mut self, schema: &'s Value, depth: u32) -> Value {
        // A recursive schema can require more than there can be.
        if self.left == 0 || depth > 4 * MAX_DEPTH {
            return Value::Null;
        }
        self.left -= 1;
        let Value::Object(fields) = schema else { return self.any(depth) };
        if let Some(value) = fields.get("const") {
            return value.clone();
        }
        if let Some(Value::Array(values)) = fields.get("enum") {
            return self.one_of(values.iter().collect()).cloned().unwrap_or_default();
        }
        let parts = self.parts(fields);
        let mut value = match self.own(fields, depth) {
            Some(value) => value,
            None if parts.is_empty() => self.any(depth),
            None => Value::Null,
        };
        for part in parts {
            match (&mut value, self.value(part, depth + 1)) {
                (Value::Object(fields), Value::Object(more)) => fields.extend(more),
                (value, made) => *value = made,
            }
        }
        value
    }

    /// The schemas that apply besides the schema's own keywords: one of each set of alternatives.
    fn parts(&mut self, fields: &'s Map<String, Value>) -> Vec<&'s Value> {
        let mut parts: Vec<&Value> = Vec::new();
        if let Some(Value::String(reference)) = fields.get("$ref") {
            parts.extend(reference.strip_prefix('#').and_then(|pointer| self.schema.pointer(pointer)));
        }
        for keyword in ["anyOf", "oneOf"] {
            if let Some(Value::Array(choices)) = fields.get(keyword) {
                parts.extend(self.one_of(choices.iter().collect()));
            }
        }
        if let Some(Value::Array(all)) = fields.get("allOf") {
            parts.extend(all);
        }
        parts
    }

    /// What the schema's own keywords describe; `None` if they leave the type open.
    fn own(&mut self, fields: &'s Map<String, Value>, depth: u32) -> Option<Value> {
        let types: Vec<&str> = match fields.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ if ["properties", "required", "additionalProperties"].iter().any(|name| fields.contains_key(*name)) => {
                vec!["object"]
            }
            _ if fields.contains_key("items") || fields.contains_key("prefixItems") => vec!["array"],
            _ => return None,
        };
        Some(match self.one_of(types).unwrap_or_default() {
            "integer" => self.integer(fields),
            "number" => self.number(fields),
            "string" => self.text(fields),
            "boolean" => self.random.bool().into(),
            "array" => self.list(fields, depth),
            "object" => self.object(fields, depth),
            _ => Value::Null,
        })
    }

    /// A value where the schema says nothing.
    fn any(&mut self, depth: u32) -> Value {
        match self.random.u8(0..if depth < MAX_DEPTH { 8 } else { 6 }) {
            0 => Value::Null,
            1 => self.random.bool().into(),
            2 => json!(self.random.i64(-10..10)),
            3 => json!(0.5),
            4 | 5 => json!(TEXTS[self.random.usize(0..TEXTS.len())]),
            6 => json!([self.any(depth + 1)]),
            _ => {
                let name = TEXTS[self.random.usize(0..TEXTS.len())].to_owned();
                let mut fields = Map::new();
                fields.insert(name, self.any(depth + 1));
                Value::Object(fields)
            }
        }
    }

    fn integer(&mut self, fields: &Map<String, Value>) -> Value {
        let bound = |name: &str| fields.get(name).and_then(Value::as_f64);
        let least = bound("minimum").map(f64::ceil).or(bound("exclusiveMinimum").map(|least| least.floor() + 1.0));
        let most = bound("maximum").map(f64::floor).or(bound("exclusiveMaximum").map(|most| most.ceil() - 1.0));
        let limit = MAX_INTEGER as f64;
        let least = least.unwrap_or(-limit).clamp(-limit, limit) as i64;
        let most = (most.unwrap_or(limit).clamp(-limit, limit) as i64).max(least);
        let step = fields.get("multipleOf").and_then(Value::as_i64).filter(|step| *step > 0).unwrap_or(1);
        let choices =
            [least, most, least.saturating_add(1), most.saturating_sub(1), 0, 1, -1, self.random.i64(least..=most)];
        let chosen = choices[self.random.usize(0..choices.len())].clamp(least, most);
        json!(chosen - chosen % step)
    }

    fn number(&mut self, fields: &Map<String, Value>) -> Value {
        let bound = |name: &str| fields.get(name).and_then(Value::as_f64);
        let least = bound("minimum").or(bound("exclusiveMinimum")).unwrap_or(-1e308);
        let most = bound("maximum").or(bound("exclusiveMaximum")).unwrap_or(1e308).max(least);
        let between = least / 2.0 + most / 2.0;
        let choices = [least, most, between, 0.0, -0.0, 1.0, -1.0, 0.1, 1e-300, 0.5, 1e21];
        json!(choices[self.random.usize(0..choices.len())].clamp(least, most))
    }

    /// A length between the bounds, often one of them.
    fn length(&mut self, fields: &Map<String, Value>, names: [&str; 2], huge: u64) -> usize {
        let [least, most] = names.map(|name| fields.get(name).and_then(Value::as_u64));
        let least = least.unwrap_or(0).min(huge);
        let most = most.unwrap_or(huge).clamp(least, huge.max(least));
        let choices = [least, least, (least + 1).min(most), (least + 3).min(most), (least + 10).min(most), most];
        // A huge value takes long to run, so it is rare.
        let count = if self.random.u8(0..8) == 0 { choices.len() } else { choices.len() - 1 };
        choices[self.random.usize(0..count)] as usize
    }

    fn text(&mut self, fields: &Map<String, Value>) -> Value {
        let length = self.length(fields, ["minLength", "maxLength"], HUGE_TEXT);
        let text = TEXTS[self.random.usize(0..TEXTS.len())];
        // Lengths count characters.
        text.chars().cycle().take(length).collect::<String>().into()
    }

    fn list(&mut self, fields: &'s Map<String, Value>, depth: u32) -> Value {
        let huge = if depth < 2 { HUGE_LIST } else { 3 };
        let length = self.length(fields, ["minItems", "maxItems"], huge);
        let first = fields.get("prefixItems").and_then(Value::as_array);
        let rest = fields.get("items").unwrap_or(ANYTHING);
        let is_open = depth < MAX_DEPTH;
        let mut items: Vec<Value> = Vec::new();
        for at in 0..length {
            let schema = first.and_then(|first| first.get(at)).unwrap_or(rest);
            if schema == &Value::Bool(false) || (!is_open && at >= 1) {
                break;
            }
            // Items of huge lists are alike, so that they are made quickly.
            let item = if at < 20 { self.value(schema, depth + 1) } else { items[at % 20].clone() };
            items.push(item);
        }
        if fields.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = std::collections::HashSet::new();
            items.retain(|item| seen.insert(item.to_string()));
        }
        Value::Array(items)
    }

    fn object(&mut self, fields: &'s Map<String, Value>, depth: u32) -> Value {
        let required: Vec<&str> = match fields.get("required") {
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let named = fields.get("properties").and_then(Value::as_object);
        let others = fields.get("additionalProperties");
        let mut made = Map::new();
        // Now and then only what is required, or all.
        let share = [0, 2, 2, 4][self.random.usize(0..4)];
        for (name, schema) in named.into_iter().flatten() {
            let is_required = required.contains(&name.as_str());
            if is_required || (depth < MAX_DEPTH && self.random.u8(0..4) < share) {
                made.insert(name.clone(), self.value(schema, depth + 1));
            }
        }
        let unnamed = required.into_iter().filter(|name| !named.is_some_and(|named| named.contains_key(*name)));
        for name in unnamed.collect::<Vec<_>>() {
            let value = others.map_or_else(|| Value::Null, |schema| self.value(schema, depth + 1));
            made.insert(name.to_owned(), value);
        }
        if others != Some(&Value::Bool(false)) && depth < MAX_DEPTH && self.random.u8(0..6) == 0 {
            let name = TEXTS[self.random.usize(0..TEXTS.len())];
            let value = others.map_or_else(|| Value::Null, |schema| self.value(schema, depth + 1));
            made.insert(name.to_owned(), value);
        }
        Value::Object(made)
    }
}
