//! The folders for data that must outlive a call, as set by the environment of the process.

use std::path::{Path, PathBuf};

use haft_contract::SessionId;

use crate::Environment;

/// The maximum length of a slug; longer ones are cut, and a hash keeps them unique.
const MAX_SLUG: usize = 200;

/// Returns [`Environment::session_folder`] for the process environment.
pub fn session_folder(cwd: &Path, session: SessionId) -> PathBuf {
    Environment::from_process().session_folder(cwd, session)
}

/// Returns [`Environment::project_folder`] for the process environment.
pub fn project_folder(cwd: &Path) -> Option<PathBuf> {
    Environment::from_process().project_folder(cwd)
}

/// Returns [`Environment::memory_folder`] for the process environment.
pub fn memory_folder(cwd: &Path) -> Option<PathBuf> {
    Environment::from_process().memory_folder(cwd)
}

/// Replaces everything in a path except letters and digits with `-`.
pub(crate) fn slug(path: &str) -> String {
    let slug: String = path
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    if slug.len() <= MAX_SLUG {
        return slug;
    }
    let hash = path.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    });
    format!("{}-{}", &slug[..MAX_SLUG], base_36(hash.unsigned_abs()))
}

fn base_36(mut number: u32) -> String {
    let mut digits = Vec::new();
    loop {
        digits.push(char::from_digit(number % 36, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slug_is_the_path_without_odd_characters() {
        assert_eq!(slug("/home/me/my project"), "-home-me-my-project");
        let long = format!("/{}", "a".repeat(300));
        let short = slug(&long);
        assert!(short.starts_with("-aaa") && short.len() > MAX_SLUG && short.len() < 220);
        assert_ne!(short, slug(&format!("{long}b")));
    }

    #[test]
    fn base_36_counts_like_everyone() {
        assert_eq!([base_36(0), base_36(35), base_36(36)], ["0", "z", "10"]);
    }
}
