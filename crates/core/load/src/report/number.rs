//! Numbers as people read them.

use std::time::Duration;

/// Three significant digits, or all digits of a larger whole number: `0.0123`, `1.23`, `123`,
/// `12,345`.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let size = value.abs();
    let decimals = match size {
        0.0 => 0,
        ..1e-6 => return format!("{value:.2e}"),
        ..1.0 => (2 - size.log10().floor() as i32) as usize,
        ..9.995 => 2,
        ..99.95 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text } else { with_commas(&text) }
}

/// A duration in the unit that suits it: `12.3 µs`, `4.56 ms`, `1.23 s`.
pub fn duration(took: Duration) -> String {
    let seconds = took.as_secs_f64();
    match seconds {
        0.0 => "0 ms".to_owned(),
        ..0.001 => format!("{} µs", number(seconds * 1e6)),
        ..1.0 => format!("{} ms", number(seconds * 1e3)),
        _ => format!("{} s", number(seconds)),
    }
}

/// Separates the thousands of a whole number.
fn with_commas(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
