//! Slash commands: prompts that call skills or commands by name, like `/name arguments`.

/// The maximum number of names in one prompt.
const MAX_COUNT: usize = 6;

/// The skills and commands that a prompt calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlashCall<'a> {
    /// The names without slashes; the first one may be unknown.
    pub names: Vec<&'a str>,
    /// The arguments for all of them.
    pub arguments: &'a str,
}

/// Parses a prompt that begins with a slash and a name. A path like `/etc/hosts` is not a name,
/// unless a skill or command has this name. `/a /b text` calls both, if they are known.
pub fn slash(prompt: &str, is_known: impl Fn(&str) -> bool) -> Option<SlashCall<'_>> {
    let prompt = prompt.trim();
    let (first, mut arguments) = called(prompt)?;
    let may_be_name = |c: char| c.is_alphanumeric() || "_-:.".contains(c);
    if !first.chars().all(may_be_name) && !is_known(first) {
        return None;
    }
    let mut names = vec![first];
    // An unknown name is not combined with others.
    while is_known(first) && names.len() < MAX_COUNT {
        match called(arguments).filter(|(name, _)| is_known(name)) {
            Some((name, rest)) => {
                names.push(name);
                arguments = rest;
            }
            None => break,
        }
    }
    Some(SlashCall { names, arguments })
}

fn called(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('/')?;
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    (!name.is_empty()).then_some((name, rest.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_what_they_are_given() {
        let known = |name: &str| ["a", "b", "git:commit", "web/app:d"].contains(&name);
        for (prompt, expected) in [
            ("/a 1 2", Some((vec!["a"], "1 2"))),
            ("  /a\n1\n2 ", Some((vec!["a"], "1\n2"))),
            ("/a /b x /a", Some((vec!["a", "b"], "x /a"))),
            ("/a /etc/hosts", Some((vec!["a"], "/etc/hosts"))),
            ("/a /c x", Some((vec!["a"], "/c x"))),
            ("/c /a x", Some((vec!["c"], "/a x"))),
            ("/git:commit", Some((vec!["git:commit"], ""))),
            ("/web/app:d x", Some((vec!["web/app:d"], "x"))),
            ("/a /a /a /a /a /a /a x", Some((vec!["a"; 6], "/a x"))),
            ("/etc/hosts is odd", None),
            ("/ a", None),
            ("a /b", None),
            ("/** comment */", None),
            ("", None),
        ] {
            let expected = expected.map(|(names, arguments)| SlashCall { names, arguments });
            assert_eq!(slash(prompt, known), expected, "{prompt:?}");
        }
    }
}
