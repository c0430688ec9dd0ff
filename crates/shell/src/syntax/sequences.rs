//! `{1..9}` and `{a..e..2}`.

/// The maximum number of steps in a listed sequence.
const MAX_STEPS: u32 = 1_000;

/// The result of `{x..y}`.
pub(super) enum BraceSequence {
    Texts(Vec<String>),
    /// Certainly not a sequence: the text is unchanged.
    Literal,
    Uncertain,
}

/// Parses the text between the braces of `{x..y}` or `{x..y..step}`.
pub(super) fn sequence(text: &str) -> BraceSequence {
    let terms: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match terms[..] {
        [first, last] => (first, last, "1"),
        [first, last, step] => (first, last, step),
        _ => return BraceSequence::Uncertain,
    };
    let Some(step) = integer(step).map(|step| step.unsigned_abs().max(1)) else {
        return BraceSequence::Uncertain;
    };
    if let (Some(from), Some(to)) = (integer(first), integer(last)) {
        let padded = |term: &str| {
            let digits = term.trim_start_matches('-');
            digits.len() > 1 && digits.starts_with('0')
        };
        if padded(first)
            || padded(last)
            || u64::from(from.abs_diff(to)) / u64::from(step) > u64::from(MAX_STEPS)
        {
            return BraceSequence::Uncertain;
        }
        return BraceSequence::Texts(
            steps(from, to, step)
                .map(|value| value.to_string())
                .collect(),
        );
    }
    let letters = |text: &str| match text.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(*letter),
        _ => None,
    };
    match (letters(first), letters(last)) {
        (Some(from), Some(to)) if from.is_ascii_lowercase() == to.is_ascii_lowercase() => {
            let letter = |value: i32| u8::try_from(value).map(char::from).unwrap_or_default();
            let values = steps(i32::from(from), i32::from(to), step);
            BraceSequence::Texts(values.map(|value| letter(value).to_string()).collect())
        }
        _ => BraceSequence::Uncertain,
    }
}

/// Returns how many arguments `{x..y}` or `{x..y..step}` becomes in bash, whose integers have 64
/// bits. Returns 1 if the text is unchanged.
pub(super) fn length(text: &str) -> u64 {
    let terms: Vec<&str> = text.split("..").collect();
    let (first, last, step) = match terms[..] {
        [first, last] => (first, last, "1"),
        [first, last, step] => (first, last, step),
        _ => return 1,
    };
    let value = |term: &str| match term.as_bytes() {
        [letter] if letter.is_ascii_alphabetic() => Some(i64::from(*letter)),
        _ => term.parse().ok(),
    };
    let (Some(first), Some(last), Ok(step)) = (value(first), value(last), step.parse::<i64>())
    else {
        return 1;
    };
    (first.abs_diff(last) / step.unsigned_abs().max(1)).saturating_add(1)
}

fn steps(from: i32, to: i32, step: u32) -> Box<dyn Iterator<Item = i32>> {
    let step = step as usize;
    match from <= to {
        true => Box::new((from..=to).step_by(step)),
        false => Box::new((to..=from).rev().step_by(step)),
    }
}

fn integer(text: &str) -> Option<i32> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let short = !digits.is_empty() && digits.len() <= 8;
    (short && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| text.parse().ok())
        .flatten()
}
