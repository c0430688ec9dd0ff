//! The changes between two snapshots of a page: added and removed lines. A line that only moved or
//! changed its depth is not a change.

use std::collections::HashMap;

/// Returns removed lines with `-` and added lines with `+`, up to `most` characters.
pub(super) fn difference(before: &[String], after: &[String], most: usize) -> String {
    let mut counts: HashMap<&str, i64> = HashMap::new();
    for line in before {
        *counts.entry(line.trim_start()).or_default() += 1;
    }
    let mut added = Vec::new();
    for line in after {
        let line = line.trim_start();
        match counts.get_mut(line) {
            Some(count) if *count > 0 => *count -= 1,
            _ => added.push(line),
        }
    }
    let mut removed = Vec::new();
    for line in before.iter().rev() {
        let line = line.trim_start();
        if let Some(count) = counts.get_mut(line).filter(|count| **count > 0) {
            *count -= 1;
            removed.push(line);
        }
    }
    removed.reverse();
    if added.is_empty() && removed.is_empty() {
        return "(nothing changed)\n".to_owned();
    }
    // Added lines get more room than removed ones.
    let plus = part(
        '+',
        &added,
        if removed.is_empty() {
            most
        } else {
            most * 3 / 4
        },
    );
    let minus = part('-', &removed, most.saturating_sub(plus.chars().count()));
    minus + &plus
}

fn part(sign: char, lines: &[&str], most: usize) -> String {
    let mut out = String::new();
    let mut used = 0;
    for (at, line) in lines.iter().enumerate() {
        let line = line.trim_start_matches("- ");
        let size = line.chars().count() + 3;
        if used + size + 40 > most {
            out.push_str(&format!(
                "{sign} … {} more lines; take a snapshot\n",
                lines.len() - at
            ));
            return out;
        }
        used += size;
        out.push_str(&format!("{sign} {line}\n"));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn only_what_is_other_is_told() {
        let before =
            of("- heading \"A\"\n- text \"old\"\n- button \"x\" [ref=e1]\n- button \"x\" [ref=e1]");
        let after = of("- heading \"A\"\n- group\n  - button \"x\" [ref=e1]\n- text \"new\"");
        assert_eq!(
            difference(&before, &after, 4_000),
            "- text \"old\"\n- button \"x\" [ref=e1]\n+ group\n+ text \"new\"\n"
        );
        assert_eq!(difference(&before, &before, 4_000), "(nothing changed)\n");
    }

    #[test]
    fn a_flood_is_counted() {
        let after: Vec<String> = (0..10_000)
            .map(|number| format!("- text \"{number}\""))
            .collect();
        let told = difference(&[], &after, 4_000);
        assert!(
            told.chars().count() <= 4_000 && told.contains("more lines; take a snapshot"),
            "{told}"
        );
    }
}
