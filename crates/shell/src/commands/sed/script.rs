//! A parser for sed scripts, as GNU sed reads them.
//!
//! It accepts only what every version reads alike. Versions differ about the end of a label, a text
//! or a pattern, and a command could hide in the difference: such scripts are rejected.

use std::borrow::Cow;

use crate::commands::program::{ScriptAct, ScriptProgram};

/// Parses a script. Several `-e` are one script with one line each.
pub(super) fn read(script: &str) -> ScriptProgram {
    let mut reader = SedReader {
        script,
        at: 0,
        acts: Vec::new(),
    };
    let doubt = reader.commands().err();
    ScriptProgram {
        acts: reader.acts,
        doubt,
    }
}

type SedStep = Result<(), Cow<'static, str>>;

struct SedReader<'a> {
    script: &'a str,
    at: usize,
    acts: Vec<ScriptAct>,
}

/// The reason for rejecting text after a command.
const EXTRA: &str = "its script has text after a command that should end there";

impl<'a> SedReader<'a> {
    fn peek(&self) -> Option<u8> {
        self.script.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += usize::from(byte.is_some());
        byte
    }

    fn skip(&mut self, skipped: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&skipped) {
            self.at += 1;
        }
    }

    fn blanks(&mut self) {
        self.skip(is_blank);
    }

    /// Skips the rest of the line, including its line break, and returns it.
    fn line(&mut self) -> &'a str {
        let rest = self.script.get(self.at..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        self.at = (self.at + line.len() + 1).min(self.script.len());
        line
    }

    fn commands(&mut self) -> SedStep {
        let mut open = 0_usize;
        loop {
            self.skip(|byte| byte == b';' || is_blank(byte) || matches!(byte, b'\n' | 11..=13));
            if self.peek().is_none() {
                return Ok(());
            }
            self.addresses()?;
            self.blanks();
            if self.peek() == Some(b'!') {
                self.at += 1;
                self.blanks();
            }
            match self.next() {
                Some(b'#') => {
                    self.line();
                }
                Some(b'{') => open += 1,
                Some(b'}') => {
                    open = open
                        .checked_sub(1)
                        .ok_or("its script closes a block that was not opened")?;
                    self.end()?;
                }
                Some(
                    b'=' | b'd' | b'D' | b'F' | b'g' | b'G' | b'h' | b'H' | b'n' | b'N' | b'p'
                    | b'P' | b'x' | b'z',
                ) => self.end()?,
                Some(b'l' | b'q' | b'Q') => {
                    self.blanks();
                    self.skip(|byte| byte.is_ascii_digit());
                    self.end()?;
                }
                Some(b':' | b'b' | b't' | b'T') => self.label()?,
                Some(b'a' | b'i' | b'c') => self.text()?,
                Some(b's') => self.substitute()?,
                Some(b'y') => {
                    let delimiter = self.delimiter()?;
                    self.replacement(delimiter)?;
                    self.replacement(delimiter)?;
                    self.end()?;
                }
                Some(b'r' | b'R') => {
                    let path = self.file()?;
                    if path != "/dev/stdin" {
                        self.acts.push(ScriptAct::Read(Some(path)));
                    }
                }
                Some(b'w' | b'W') => {
                    let path = self.file()?;
                    self.acts.push(ScriptAct::Write(Some(path)));
                }
                Some(b'e') => {
                    self.blanks();
                    let start = self.at;
                    if !matches!(self.peek(), None | Some(b'\n')) {
                        self.text()?;
                    }
                    let line = self.script.get(start..self.at).unwrap_or_default().trim();
                    let certain = !line.is_empty() && !line.contains('\\');
                    self.acts
                        .push(ScriptAct::Run(certain.then(|| line.to_owned())));
                }
                _ => return Err("its script has a command that is not known".into()),
            }
        }
    }

    /// Expects the end of a command: a line break, `;`, `}` or a comment.
    fn end(&mut self) -> SedStep {
        self.blanks();
        match self.peek() {
            None | Some(b'}' | b'#') => Ok(()),
            Some(b'\n' | b';') => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(EXTRA.into()),
        }
    }

    fn addresses(&mut self) -> SedStep {
        if !self.address()? {
            return Ok(());
        }
        self.blanks();
        if self.peek() != Some(b',') {
            return Ok(());
        }
        self.at += 1;
        self.blanks();
        if matches!(self.peek(), Some(b'+' | b'~')) {
            self.at += 1;
            self.blanks();
            self.skip(|byte| byte.is_ascii_digit());
            return Ok(());
        }
        match self.address()? {
            true => Ok(()),
            false => Err("its script lacks an address".into()),
        }
    }

    fn address(&mut self) -> Result<bool, Cow<'static, str>> {
        let delimiter = match self.peek() {
            Some(b'0'..=b'9') => {
                self.skip(|byte| byte.is_ascii_digit());
                self.blanks();
                if self.peek() == Some(b'~') {
                    self.at += 1;
                    self.blanks();
                    self.skip(|byte| byte.is_ascii_digit());
                }
                return Ok(true);
            }
            Some(b'$') => {
                self.at += 1;
                return Ok(true);
            }
            Some(b'/') => {
                self.at += 1;
                b'/'
            }
            Some(b'\\') => {
                self.at += 1;
                self.delimiter()?
            }
            _ => return Ok(false),
        };
        self.pattern(delimiter)?;
        self.skip(|byte| is_blank(byte) || matches!(byte, b'I' | b'M'));
        Ok(true)
    }

    fn substitute(&mut self) -> SedStep {
        let delimiter = self.delimiter()?;
        self.pattern(delimiter)?;
        self.replacement(delimiter)?;
        loop {
            match self.peek() {
                Some(b'g' | b'p' | b'i' | b'I' | b'm' | b'M' | b'0'..=b'9' | b' ' | b'\t') => {
                    self.at += 1;
                }
                Some(b'e') => {
                    self.at += 1;
                    self.acts.push(ScriptAct::Run(None));
                }
                Some(b'w') => {
                    self.at += 1;
                    let path = self.file()?;
                    self.acts.push(ScriptAct::Write(Some(path)));
                    return Ok(());
                }
                _ => return self.end(),
            }
        }
    }

    /// Reads the delimiter of `s` and `y`. Letters are valid delimiters, but are rejected because
    /// they only serve to hide commands.
    fn delimiter(&mut self) -> Result<u8, Cow<'static, str>> {
        match self.next() {
            Some(byte) if byte.is_ascii_punctuation() && !matches!(byte, b'\\' | b'[') => Ok(byte),
            _ => Err("its script sets off a pattern in an odd way".into()),
        }
    }

    /// Reads a pattern and the delimiter after it. Inside a bracket expression, the delimiter is an
    /// ordinary character.
    fn pattern(&mut self, delimiter: u8) -> SedStep {
        loop {
            match self.next() {
                Some(byte) if byte == delimiter => return Ok(()),
                // `\c` takes one more letter in newer versions.
                Some(b'\\') => match self.next() {
                    None | Some(b'c') => break,
                    Some(_) => {}
                },
                Some(b'[') => self.bracket()?,
                None | Some(b'\n') => break,
                Some(_) => {}
            }
        }
        Err("its script has a pattern that does not end".into())
    }

    /// Reads a bracket expression after its `[`.
    fn bracket(&mut self) -> SedStep {
        const OPEN: &str = "its script has a bracket expression that does not end";
        if self.peek() == Some(b'^') {
            self.at += 1;
        }
        if self.peek() == Some(b']') {
            self.at += 1;
        }
        loop {
            match self.next() {
                Some(b']') => return Ok(()),
                None | Some(b'\n') => return Err(OPEN.into()),
                Some(b'[') if self.peek() == Some(b':') => {
                    self.at += 1;
                    self.skip(|byte| byte.is_ascii_lowercase());
                    if !self.script.as_bytes()[self.at..].starts_with(b":]") {
                        return Err(OPEN.into());
                    }
                    self.at += 2;
                }
                Some(b'[') if matches!(self.peek(), Some(b'.' | b'=')) => {
                    return Err("its script has a bracket expression that is not known".into());
                }
                Some(_) => {}
            }
        }
    }

    /// Reads a replacement or a part of `y`, and the delimiter after it.
    fn replacement(&mut self, delimiter: u8) -> SedStep {
        loop {
            match self.next() {
                Some(byte) if byte == delimiter => return Ok(()),
                Some(b'\\') if self.next().is_some() => {}
                None | Some(b'\n' | b'\\') => {
                    return Err("its script has a replacement that does not end".into());
                }
                Some(_) => {}
            }
        }
    }

    /// Reads a label. Versions differ about the characters in a label, so it must be plain and end
    /// where all versions see its end.
    fn label(&mut self) -> SedStep {
        self.blanks();
        self.skip(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-'));
        if self.peek() == Some(b'}') {
            let behind = self.script.as_bytes().get(self.at + 1);
            return match behind {
                None | Some(b' ' | b'\t' | b'\n' | b';' | b'}') => Ok(()),
                Some(_) => Err(EXTRA.into()),
            };
        }
        self.blanks();
        match self.next() {
            None | Some(b'\n' | b';') => Ok(()),
            Some(b'}') => {
                self.at -= 1;
                Ok(())
            }
            Some(_) => Err("its script has a label that is not plain".into()),
        }
    }

    /// Reads the text of `a`, `i` and `c`: up to the end of the line, and further lines after a
    /// backslash.
    fn text(&mut self) -> SedStep {
        const ODD: &str = "its script adds text in an odd way";
        self.blanks();
        if self.peek() == Some(b'\\') {
            self.at += 1;
            match self.peek() {
                None => return Ok(()),
                Some(b'\n') => self.at += 1,
                Some(_) => {
                    self.blanks();
                    if matches!(self.peek(), None | Some(b'\n' | b'\\')) {
                        return Err(ODD.into());
                    }
                }
            }
        } else if matches!(self.peek(), None | Some(b'\n' | b'}')) {
            return Err(ODD.into());
        }
        loop {
            match self.next() {
                None | Some(b'\n') => return Ok(()),
                Some(b'\\') => {
                    self.next();
                }
                Some(_) => {}
            }
        }
    }

    /// Reads a file name, which is the rest of the line.
    fn file(&mut self) -> Result<String, Cow<'static, str>> {
        self.blanks();
        match self.line() {
            "" => Err("its script lacks the name of a file".into()),
            name => Ok(name.to_owned()),
        }
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}
