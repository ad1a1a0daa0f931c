//! `multipleOf`, in decimal arithmetic. The validator's own divides fractions of any size: a number
//! such as 1e300 took as long as a hundred others.

use jsonschema::{Keyword, ValidationError};
use serde_json::{Number, Value};

pub(crate) struct MultipleOf {
    /// The meta-schema accepts only a number above 0.
    divisor: Option<Decimal>,
    text: String,
}

impl MultipleOf {
    pub(crate) fn new(divisor: &Value) -> Self {
        Self { divisor: divisor.as_number().and_then(Decimal::of), text: divisor.to_string() }
    }
}

impl<'i> Keyword<'i> for MultipleOf {
    fn validate(&self, instance: &'i Value) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        Err(ValidationError::custom(format!("must be a multiple of {}, is {instance}", self.text)))
    }

    fn is_valid(&self, instance: &'i Value) -> bool {
        let (Some(number), Some(divisor)) = (instance.as_number(), self.divisor) else { return true };
        Decimal::of(number).is_some_and(|number| number.is_multiple_of(divisor))
    }
}

/// The amount of a number without its sign, as its JSON text states it: `digits * 10^exponent`.
#[derive(Debug, Clone, Copy)]
struct Decimal {
    digits: u64,
    exponent: i32,
}

impl Decimal {
    /// JSON numbers here have at most 20 digits: they are 64-bit integers or floats.
    fn of(number: &Number) -> Option<Self> {
        let text = number.to_string();
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{}{fraction}", whole.trim_start_matches('-')).parse().ok()?;
        let exponent: i32 = exponent.parse().ok()?;
        Some(Self { digits, exponent: exponent - i32::try_from(fraction.len()).ok()? })
    }

    fn is_multiple_of(self, divisor: Self) -> bool {
        let (digits, modulus) = (u128::from(self.digits), u128::from(divisor.digits));
        if digits == 0 || modulus == 0 {
            return digits == 0;
        }
        let shift = self.exponent - divisor.exponent;
        if let Ok(zeros) = u32::try_from(shift) {
            // Both factors are below 2^64.
            return (digits % modulus * power_of_ten(zeros, modulus)).is_multiple_of(modulus);
        }
        // A divisor that is too large for 128 bits is larger than all digits.
        let divisor = 10_u128.checked_pow(shift.unsigned_abs()).and_then(|scale| modulus.checked_mul(scale));
        divisor.is_some_and(|divisor| digits.is_multiple_of(divisor))
    }
}

/// 10 to this power, modulo a number below 2^64.
fn power_of_ten(mut exponent: u32, modulus: u128) -> u128 {
    let (mut base, mut power) = (10 % modulus, 1 % modulus);
    while exponent > 0 {
        if exponent % 2 == 1 {
            power = power * base % modulus;
        }
        base = base * base % modulus;
        exponent /= 2;
    }
    power
}
