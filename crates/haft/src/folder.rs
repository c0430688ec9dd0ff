//! Where a session keeps what must outlive a call.

use std::{
    env,
    path::{Path, PathBuf},
};

use haft_contract::SessionId;

/// Longer slugs than this are cut, and told apart by a hash.
const LONGEST_SLUG: usize = 200;

/// `CONFIG/projects/SLUG/SESSION`, as the common convention has it: `CONFIG` is `CLAUDE_CONFIG_DIR`
/// or `~/.claude`, the slug is made of the directory's path. Nothing is created. Without a home, a
/// folder of its own among the temporary files.
pub fn session_folder(cwd: &Path, session: SessionId) -> PathBuf {
    match project_folder(cwd) {
        Some(project) => project.join(session.to_string()),
        // The session's id is random, so nobody can have put a folder of that name there.
        None => env::temp_dir().join(format!("haft-session-{session}")),
    }
}

/// The folder of all sessions of a directory; `None` without a home.
pub fn project_folder(cwd: &Path) -> Option<PathBuf> {
    let configured = env::var_os("CLAUDE_CONFIG_DIR").filter(|dir| !dir.is_empty());
    let home = env::var_os("HOME").filter(|home| Path::new(home).is_absolute());
    let config = match (configured, home) {
        (Some(config), _) => PathBuf::from(config),
        (None, Some(home)) => Path::new(&home).join(".claude"),
        (None, None) => return None,
    };
    Some(config.join("projects").join(slug(&cwd.to_string_lossy())))
}

/// Where notes are kept that outlive a session: `memory` in the folder of all sessions of the repository
/// that a directory lies in, or of the directory itself outside of any; `None` without a home.
pub fn memory_folder(cwd: &Path) -> Option<PathBuf> {
    let root = haft_engine::settings::files::repository_root(cwd);
    let project = project_folder(root.as_deref().unwrap_or(cwd))?;
    Some(project.join("memory"))
}

/// The path with everything but letters and digits as `-`.
fn slug(path: &str) -> String {
    let slug: String = path
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    if slug.len() <= LONGEST_SLUG {
        return slug;
    }
    let hash = path.encode_utf16().fold(0_i32, |hash, unit| {
        hash.wrapping_mul(31).wrapping_add(i32::from(unit))
    });
    format!("{}-{}", &slug[..LONGEST_SLUG], base_36(hash.unsigned_abs()))
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
        assert!(short.starts_with("-aaa") && short.len() > LONGEST_SLUG && short.len() < 220);
        assert_ne!(short, slug(&format!("{long}b")));
    }

    #[test]
    fn base_36_counts_like_everyone() {
        assert_eq!([base_36(0), base_36(35), base_36(36)], ["0", "z", "10"]);
    }
}
