//! Exact comparison of JSON numbers, where 1 and 1.0 are equal.

use std::cmp::Ordering;

use serde_json::{Number, Value};

pub(super) fn is_integer(number: &Number, whole_floats: bool) -> bool {
    match number.as_f64() {
        // An integer that is too large for 64 bits is stored as a float.
        Some(float) if number.is_f64() => {
            float.fract() == 0.0 && (whole_floats || float.abs() >= 9_223_372_036_854_775_808.0)
        }
        _ => true,
    }
}

/// Parses a non-negative whole number, such as a length.
pub(super) fn count(value: &Value) -> Option<u64> {
    let number = value.as_number()?;
    match (number.as_u64(), number.as_f64()) {
        (Some(count), _) => Some(count),
        // Anything larger than `u64::MAX` is treated like it.
        (None, Some(float)) if float >= 0.0 && float.fract() == 0.0 => Some(float as u64),
        _ => None,
    }
}

fn to_integer(number: &Number) -> Option<i128> {
    match (number.as_i64(), number.as_u64()) {
        (Some(signed), _) => Some(signed.into()),
        (None, Some(unsigned)) => Some(unsigned.into()),
        _ => {
            let float = number.as_f64()?;
            // Below 2^100 a whole float is an exact integer.
            (float.fract() == 0.0 && float.abs() < 1e30).then_some(float as i128)
        }
    }
}

pub(super) fn compare(a: &Number, b: &Number) -> Ordering {
    if let (Some(a), Some(b)) = (to_integer(a), to_integer(b)) {
        return a.cmp(&b);
    }
    let float = |number: &Number| number.as_f64().unwrap_or(f64::NAN);
    let (left, right) = (float(a), float(b));
    match left.partial_cmp(&right) {
        // A large integer was rounded in this comparison, but no number with a fraction is that
        // large.
        Some(ordering) => ordering,
        None => Ordering::Equal,
    }
}

/// Returns whether one number is a multiple of the other, computed with decimal digits.
pub(super) fn is_multiple(number: &Number, of: &Number) -> bool {
    let (Some((digits, exponent)), Some((unit, unit_exponent))) = (decimal(number), decimal(of))
    else {
        return false;
    };
    if digits == 0 {
        return true;
    }
    if unit == 0 {
        return false;
    }
    if exponent >= unit_exponent {
        // digits * 10^shift modulo unit, one digit at a time, which cannot overflow: `unit` has at
        // most 20 digits.
        let mut rest = digits % unit;
        for _ in 0..exponent - unit_exponent {
            rest = rest * 10 % unit;
        }
        return rest == 0;
    }
    let shift = u32::try_from(unit_exponent - exponent).unwrap_or(u32::MAX);
    match 10_u128
        .checked_pow(shift)
        .and_then(|scale| scale.checked_mul(unit))
    {
        Some(unit) => digits % unit == 0,
        // The scaled unit overflows, so it is larger than `digits`, which is not zero here.
        None => false,
    }
}

/// Returns the absolute value as digits and a power of ten.
fn decimal(number: &Number) -> Option<(u128, i32)> {
    let text = number.to_string();
    let text = text.trim_start_matches('-');
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse().ok()?),
        None => (text, 0),
    };
    let (before, after) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let after = after.trim_end_matches('0');
    let digits = format!("{before}{after}").parse().ok()?;
    Some((digits, exponent - i32::try_from(after.len()).ok()?))
}

/// Compares values as JSON does: numbers by value, objects in any order.
pub(super) fn json_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Ordering::Equal,
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| json_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| json_equal(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn number(value: &Value) -> &Number {
        value.as_number().unwrap()
    }

    #[test]
    fn multiples_are_exact() {
        for (a, b, wanted) in [
            (json!(0.0075), json!(0.0001), true),
            (json!(0.00751), json!(0.0001), false),
            (json!(1e308), json!(0.123_456_789), false),
            (json!(1e308), json!(0.5), true),
            (json!(-9), json!(3), true),
            (json!(4.5), json!(1.5), true),
            (json!(7), json!(2.0), false),
            (json!(0), json!(1e300), true),
            (json!(18_446_744_073_709_551_615_u64), json!(5), true),
        ] {
            assert_eq!(is_multiple(number(&a), number(&b)), wanted, "{a} of {b}");
        }
    }

    #[test]
    fn numbers_are_compared_by_value() {
        assert!(json_equal(&json!([1, {"a": 2.0}]), &json!([1.0, {"a": 2}])));
        assert!(!json_equal(&json!(true), &json!(1)));
        for (a, b, wanted) in [
            (json!(u64::MAX), json!(i64::MIN), Ordering::Greater),
            (
                json!(9_007_199_254_740_993_u64),
                json!(9_007_199_254_740_992.0),
                Ordering::Greater,
            ),
            (json!(1.5), json!(1), Ordering::Greater),
            (json!(1e300), json!(u64::MAX), Ordering::Greater),
        ] {
            assert_eq!(compare(number(&a), number(&b)), wanted, "{a} and {b}");
        }
    }
}
