//! Equality of JSON values as in Postgres' jsonb (1 equals 1.0, objects have no order), and hash
//! sets of values.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use serde_json::{Map, Number, Value};

/// A set of JSON values. A lookup takes time proportional to the value that is looked up, whatever
/// the size of the set.
#[derive(Debug, Default)]
pub struct ValueSet {
    /// Random for each set, so that colliding values cannot be constructed.
    keys: RandomState,
    by_hash: HashMap<u64, Vec<Value>>,
}

impl<'v> FromIterator<&'v Value> for ValueSet {
    fn from_iter<I: IntoIterator<Item = &'v Value>>(values: I) -> Self {
        let values = values.into_iter();
        let by_hash = HashMap::with_capacity(values.size_hint().0);
        let mut set = Self { keys: RandomState::new(), by_hash };
        for value in values {
            let same_hash = set.by_hash.entry(hash_of(&set.keys, value)).or_default();
            if !same_hash.iter().any(|other| same(other, value)) {
                same_hash.push(value.clone());
            }
        }
        set
    }
}

impl ValueSet {
    /// Whether all values are different.
    pub fn are_distinct(values: &[Value]) -> bool {
        let keys = RandomState::new();
        let mut by_hash: HashMap<u64, Vec<&Value>> = HashMap::with_capacity(values.len());
        values.iter().all(|value| {
            let same_hash = by_hash.entry(hash_of(&keys, value)).or_default();
            let is_new = !same_hash.iter().any(|other| same(other, value));
            same_hash.push(value);
            is_new
        })
    }

    pub fn contains(&self, value: &Value) -> bool {
        let same_hash = self.by_hash.get(&hash_of(&self.keys, value));
        same_hash.is_some_and(|values| values.iter().any(|other| same(other, value)))
    }
}

fn hash_of(keys: &RandomState, value: &Value) -> u64 {
    let mut hasher = keys.build_hasher();
    hash(keys, value, &mut hasher);
    hasher.finish()
}

/// Equal values, as [`same`] compares them, have equal hashes.
fn hash(keys: &RandomState, value: &Value, hasher: &mut impl Hasher) {
    match value {
        Value::Null => hasher.write_u8(0),
        Value::Bool(bool) => hasher.write_u8(1 + u8::from(*bool)),
        Value::Number(number) => match whole(number) {
            Some(whole) => (3_u8, whole).hash(hasher),
            None => (4_u8, number.as_f64().map(f64::to_bits)).hash(hasher),
        },
        Value::String(text) => (5_u8, text).hash(hasher),
        Value::Array(items) => {
            (6_u8, items.len()).hash(hasher);
            for item in items {
                hash(keys, item, hasher);
            }
        }
        Value::Object(entries) => (7_u8, entries.len(), hash_of_entries(keys, entries)).hash(hasher),
    }
}

/// A sum, because objects have no order.
fn hash_of_entries(keys: &RandomState, entries: &Map<String, Value>) -> u64 {
    let of_entry = |(key, value): (&String, &Value)| {
        let mut hasher = keys.build_hasher();
        key.hash(&mut hasher);
        hash(keys, value, &mut hasher);
        hasher.finish()
    };
    entries.iter().map(of_entry).fold(0, u64::wrapping_add)
}

/// The number as an integer, if a JSON integer can equal it, whether it is written as a float or
/// not.
fn whole(number: &Number) -> Option<i128> {
    integer(number).or_else(|| whole_float(number.as_f64()?))
}

/// The integer in the float's JSON text, if a JSON integer can equal it. Computed by arithmetic,
/// because writing and parsing the text takes twice as long for each number that is looked up.
fn whole_float(float: f64) -> Option<i128> {
    /// Every integer up to here is exactly a float.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    /// From here on, floats are larger than every JSON integer.
    const BEYOND: f64 = 18_446_744_073_709_551_616.0;
    if float.fract() != 0.0 || float.abs() >= BEYOND {
        return None;
    }
    if float.abs() < EXACT {
        return Some(float as i128);
    }
    let text = i128::from(shortest(float.abs() as u64));
    Some(if float < 0.0 { -text } else { text })
}

/// A float is written with the fewest digits that parse back to it. Of the integers that do, this
/// is the one with the most trailing zeros, and of those the closest.
fn shortest(exact: u64) -> u64 {
    let float = exact as f64;
    let (mut found, mut unit) = (exact, 10_u64);
    loop {
        let below = exact - exact % unit;
        let above = below.checked_add(unit);
        let nearer_first = if exact - below <= unit / 2 { [Some(below), above] } else { [above, Some(below)] };
        let Some(shorter) =
            nearer_first.into_iter().flatten().find(|integer| (*integer as f64).to_bits() == float.to_bits())
        else {
            return found;
        };
        found = shorter;
        let Some(next) = unit.checked_mul(10) else { return found };
        unit = next;
    }
}

/// JSON equality as in Postgres' jsonb: numbers by amount, objects without order.
pub(crate) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => amounts(a, b) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.get(key).is_some_and(|other| same(value, other)))
        }
        _ => left == right,
    }
}

/// The order of two numbers or of two strings; `None` for other values.
pub(crate) fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => amounts(a, b),
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// The order of two numbers by their exact decimal amounts, as in Postgres' numeric.
fn amounts(left: &Number, right: &Number) -> Option<Ordering> {
    match (integer(left), integer(right)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => Some(beside(a, right.as_f64()?)),
        (None, Some(b)) => Some(beside(b, left.as_f64()?).reverse()),
        (None, None) => left.as_f64()?.partial_cmp(&right.as_f64()?),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_i64().map(i128::from).or_else(|| number.as_u64().map(i128::from))
}

/// Compares an integer with a float. The float counts as its JSON text, the shortest decimal that
/// parses back to it.
fn beside(integer: i128, float: f64) -> Ordering {
    match whole_float(float) {
        Some(whole) => integer.cmp(&whole),
        // It has a fraction, or is outside of the range of JSON integers.
        None => integer.cmp(&(float as i128)).then(if float > 0.0 { Ordering::Less } else { Ordering::Greater }),
    }
}
