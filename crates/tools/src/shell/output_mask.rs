//! Masks the values of secret variables in the output of commands, even if a value is split between
//! chunks.

use std::{collections::BTreeSet, env, fs, ops::Range};

use haft_contract::{Confinement, secrets};
use memchr::memmem::Finder;

use super::environment::PROXIES;

/// The minimum length of a value that is masked at any position. A shorter value may be part of
/// other text, so it is masked only after its name.
const MIN_LENGTH: usize = 8;

/// The maximum size of a file with variables that is read.
const MAX_FILE: u64 = 1 << 16;

/// Replaces secret values in a stream of bytes.
#[derive(Debug, Clone)]
pub(crate) struct OutputMask {
    patterns: Vec<SecretPattern>,
    /// The end of the stream, if it may be the beginning of a secret.
    pending: Vec<u8>,
}

#[derive(Debug, Clone)]
struct SecretPattern {
    finder: Finder<'static>,
    /// The part that is replaced.
    masked: Range<usize>,
}

impl OutputMask {
    /// Returns the mask for the variables of a command; `None` if no variable has a secret value.
    pub(crate) fn for_confinement(confinement: &Confinement) -> Option<Self> {
        let mut variables: Vec<(String, String)> = Vec::new();
        for name in &*confinement.masked {
            if let Some(value) = confinement.env.get(name) {
                variables.push((name.clone(), value.clone()));
            }
        }
        for proxy in PROXIES {
            for name in [(*proxy).to_owned(), proxy.to_ascii_uppercase()] {
                variables.extend(env::var(&name).ok().map(|value| (name, value)));
            }
        }
        if let Some(file) = &confinement.sourced
            && fs::metadata(file).is_ok_and(|metadata| metadata.len() <= MAX_FILE)
        {
            let text = fs::read_to_string(file).unwrap_or_default();
            variables.extend(text.lines().filter_map(assignment));
        }
        Self::new(variables)
    }

    fn new(variables: Vec<(String, String)>) -> Option<Self> {
        let mut texts = BTreeSet::new();
        for (name, value) in &variables {
            let Some(secret) = secrets::secret_part(name, value) else {
                continue;
            };
            if secret == secrets::MASK {
                continue;
            }
            if secret.len() >= MIN_LENGTH {
                texts.insert((String::new(), secret.to_owned()));
            }
            // `env` prints the first form, `declare -p` the second.
            texts.insert((format!("{name}="), value.clone()));
            texts.insert((format!("{name}=\""), value.clone()));
            texts.insert((format!("{name}='"), value.clone()));
            let lines = secret.lines().filter(|line| line.len() >= 2 * MIN_LENGTH);
            texts.extend(lines.map(|line| (String::new(), line.to_owned())));
        }
        let mut patterns: Vec<SecretPattern> = texts.into_iter().map(SecretPattern::new).collect();
        // The longest first: a value may contain another one.
        patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.finder.needle().len()));
        (!patterns.is_empty()).then_some(Self {
            patterns,
            pending: Vec::new(),
        })
    }

    /// Adds bytes of the stream. Returns the masked bytes that can be shown now.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.pending.extend_from_slice(bytes);
        self.replace();
        let end = self.pending.len() - self.unfinished();
        self.pending.drain(..end).collect()
    }

    /// Returns the rest of the stream.
    pub(crate) fn finish(&mut self) -> Vec<u8> {
        self.replace();
        std::mem::take(&mut self.pending)
    }

    fn replace(&mut self) {
        for pattern in &self.patterns {
            let mut from = 0;
            while let Some(found) = pattern.finder.find(&self.pending[from..]) {
                let start = from + found + pattern.masked.start;
                let end = from + found + pattern.masked.end;
                let mask = secrets::MASK.bytes();
                self.pending.splice(start..end, mask);
                from = start + secrets::MASK.len();
            }
        }
    }

    /// Returns the length of the longest suffix of the stream that may be the beginning of a
    /// secret.
    fn unfinished(&self) -> usize {
        let longest = self.patterns.iter().map(|pattern| {
            let needle = pattern.finder.needle();
            let max = self.pending.len().min(needle.len() - 1);
            let mut lengths = (1..=max).rev();
            lengths
                .find(|length| self.pending.ends_with(&needle[..*length]))
                .unwrap_or(0)
        });
        longest.max().unwrap_or(0)
    }
}

impl SecretPattern {
    fn new((prefix, value): (String, String)) -> Self {
        let text = format!("{prefix}{value}");
        Self {
            finder: Finder::new(text.as_bytes()).into_owned(),
            masked: prefix.len()..text.len(),
        }
    }
}

/// Parses `export NAME=VALUE`.
fn assignment(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    let (name, value) = line.split_once('=')?;
    let quoted = ['"', '\''].iter().find_map(|quote| {
        let inner = value.strip_prefix(*quote)?;
        inner.strip_suffix(*quote)
    });
    Some((name.to_owned(), quoted.unwrap_or(value).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(variables: &[(&str, &str)]) -> OutputMask {
        let variables = variables.iter();
        let variables = variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        OutputMask::new(variables.collect()).expect("there is a secret")
    }

    fn masked(mut mask: OutputMask, pieces: &[&str]) -> String {
        let mut bytes = Vec::new();
        for piece in pieces {
            bytes.extend(mask.push(piece.as_bytes()));
        }
        bytes.extend(mask.finish());
        String::from_utf8(bytes).expect("text")
    }

    #[test]
    fn a_value_is_masked_however_the_stream_is_split() {
        let text =
            "API_KEY=hunter22hunter\nPATH=/bin\nexport API_KEY='hunter22hunter'\nend hunter2";
        let expected = "API_KEY=[masked]\nPATH=/bin\nexport API_KEY='[masked]'\nend hunter2";
        for size in 1..text.len() {
            let pieces: Vec<String> = text
                .as_bytes()
                .chunks(size)
                .map(|piece| String::from_utf8_lossy(piece).into_owned())
                .collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            let mask = mask(&[("API_KEY", "hunter22hunter")]);
            assert_eq!(masked(mask, &pieces), expected, "pieces of {size} bytes");
        }
    }

    #[test]
    fn a_short_value_is_masked_only_after_its_name() {
        let mask = mask(&[("DB_PASSWORD", "1234")]);
        let text = "DB_PASSWORD=1234 and declare -x DB_PASSWORD=\"1234\", line 1234";
        let expected = "DB_PASSWORD=[masked] and declare -x DB_PASSWORD=\"[masked]\", line 1234";
        assert_eq!(masked(mask, &[text]), expected);
    }

    #[test]
    fn the_longest_value_and_every_line_of_a_key_is_masked() {
        let both = mask(&[("A_TOKEN", "secret-token"), ("B_TOKEN", "secret-token-2")]);
        assert_eq!(
            masked(both, &["secret-token-2 secret-token"]),
            "[masked] [masked]"
        );
        let key = mask(&[("K", "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG\n")]);
        assert_eq!(masked(key, &["> MIIEvQIBADANBgkqhkiG <"]), "> [masked] <");
    }

    #[test]
    fn a_password_of_an_address_is_masked_alone() {
        let proxy = mask(&[("https_proxy", "http://user:longpassword@host:1")]);
        let text = "https_proxy=http://user:longpassword@host:1";
        assert!(!masked(proxy, &[text]).contains("longpassword"));
    }

    #[test]
    fn variables_without_secrets_need_no_mask() {
        let plain = vec![("NODE_ENV".to_owned(), "production".to_owned())];
        assert!(OutputMask::new(plain).is_none());
    }

    #[test]
    fn an_exported_variable_is_parsed() {
        let expected = Some(("A_KEY".to_owned(), "b c".to_owned()));
        assert_eq!(assignment("export A_KEY='b c'"), expected);
        assert_eq!(assignment("A_KEY=\"b c\""), expected);
        assert_eq!(assignment("# nothing"), None);
    }
}
