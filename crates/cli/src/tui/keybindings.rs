//! The user's key bindings: `~/.claude/keybindings.json`.
//!
//! `{"bindings": [{"context": "Chat", "bindings": {"ctrl+e": "chat:externalEditor", "ctrl+u":
//! null}}]}`. The keys of a sequence are separated by spaces; `null` removes a default binding.

use std::{collections::BTreeSet, fs, io, path::Path};

use haft_terminal::{Key, KeyCode, KeyModifiers};
use serde_json::Value;

/// The context in which a key is pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum KeyContext {
    /// Every context.
    Global,
    /// The editor.
    Chat,
    /// While completions are shown.
    Autocomplete,
    /// A question.
    Confirmation,
    /// The transcript view.
    Transcript,
    /// The history search.
    HistorySearch,
    /// While a call runs.
    Task,
}

const CONTEXTS: [(&str, KeyContext); 7] = [
    ("Global", KeyContext::Global),
    ("Chat", KeyContext::Chat),
    ("Autocomplete", KeyContext::Autocomplete),
    ("Confirmation", KeyContext::Confirmation),
    ("Transcript", KeyContext::Transcript),
    ("HistorySearch", KeyContext::HistorySearch),
    ("Task", KeyContext::Task),
];

/// The actions that keys can be bound to. `command:NAME` is also allowed and runs the slash command
/// `NAME`.
pub(crate) const ACTIONS: [&str; 39] = [
    "app:exit",
    "app:interrupt",
    "app:redraw",
    "app:toggleTodos",
    "app:toggleTranscript",
    "autocomplete:accept",
    "autocomplete:dismiss",
    "autocomplete:next",
    "autocomplete:previous",
    "chat:cancel",
    "chat:copyAnswer",
    "chat:cycleMode",
    "chat:externalEditor",
    "chat:imagePaste",
    "chat:modelPicker",
    "chat:newline",
    "chat:stash",
    "chat:submit",
    "chat:thinkingToggle",
    "chat:undo",
    "confirm:always",
    "confirm:cycleMode",
    "confirm:next",
    "confirm:nextField",
    "confirm:no",
    "confirm:previous",
    "confirm:toggle",
    "confirm:toggleExplanation",
    "confirm:yes",
    "history:next",
    "history:previous",
    "history:search",
    "historySearch:accept",
    "historySearch:cancel",
    "historySearch:execute",
    "historySearch:next",
    "task:background",
    "transcript:exit",
    "transcript:toggleShowAll",
];

/// The meaning of a key sequence in the user's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyBinding {
    /// The keys run this action.
    Action(String),
    /// The keys have no effect, regardless of their default.
    Taken,
    /// The keys are the beginning of a longer sequence.
    Prefix,
    /// The file does not mention the keys, so the default applies.
    Usual,
}

/// The bindings of a file. If keys are bound several times, the last binding wins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Keybindings {
    bound: Vec<(KeyContext, Vec<Key>, Option<String>)>,
}

impl Keybindings {
    /// Loads the file. A missing file contains no bindings. Invalid entries are skipped and listed
    /// in a single warning.
    pub(crate) fn load(path: &Path) -> (Self, Option<String>) {
        let shown = path.display();
        match fs::read_to_string(path) {
            Ok(text) => match serde_json::from_str(&text) {
                Ok(value) => {
                    let (bindings, unknown) = Self::from_json(&value);
                    let warning = (!unknown.is_empty()).then(|| {
                        let unknown: Vec<String> = unknown.into_iter().collect();
                        format!("{shown}: unknown, ignored: {}", unknown.join(", "))
                    });
                    (bindings, warning)
                }
                Err(error) => (Self::default(), Some(format!("{shown}: {error}"))),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => (Self::default(), None),
            Err(error) => (Self::default(), Some(format!("{shown}: {error}"))),
        }
    }

    /// Returns the bindings and the unknown contexts, keys and actions.
    fn from_json(value: &Value) -> (Self, BTreeSet<String>) {
        let mut bindings = Self::default();
        let mut unknown = BTreeSet::new();
        for block in value["bindings"].as_array().into_iter().flatten() {
            let name = block["context"].as_str().unwrap_or_default();
            let Some((_, context)) = CONTEXTS.iter().find(|(known, _)| *known == name) else {
                unknown.insert(format!("context {name}"));
                continue;
            };
            for (keys, action) in block["bindings"].as_object().into_iter().flatten() {
                let Some(parsed) = keys_of(keys) else {
                    unknown.insert(format!("key {keys}"));
                    continue;
                };
                let action = match action {
                    Value::Null => None,
                    Value::String(action) if is_known(action) => Some(action.clone()),
                    other => {
                        unknown.insert(format!("action {other}"));
                        continue;
                    }
                };
                bindings.bound.push((*context, parsed, action));
            }
        }
        (bindings, unknown)
    }

    /// Returns the meaning of a key sequence. Bindings of the context override those of `Global`.
    pub(crate) fn binding(&self, context: KeyContext, keys: &[Key]) -> KeyBinding {
        for context in [context, KeyContext::Global] {
            let here = || {
                self.bound
                    .iter()
                    .rev()
                    .filter(move |bound| bound.0 == context)
            };
            if let Some((_, _, action)) = here().find(|bound| bound.1 == keys) {
                return match action {
                    Some(action) => KeyBinding::Action(action.clone()),
                    None => KeyBinding::Taken,
                };
            }
            let begins = |bound: &&(KeyContext, Vec<Key>, Option<String>)| {
                bound.1.starts_with(keys) && bound.2.is_some()
            };
            if here().any(|bound| begins(&bound)) {
                return KeyBinding::Prefix;
            }
        }
        KeyBinding::Usual
    }
}

fn is_known(action: &str) -> bool {
    let is_command = action
        .strip_prefix("command:")
        .is_some_and(|name| !name.is_empty());
    is_command || ACTIONS.contains(&action)
}

/// Parses a sequence such as `ctrl+x ctrl+e`.
fn keys_of(text: &str) -> Option<Vec<Key>> {
    let keys: Option<Vec<Key>> = text.split_whitespace().map(key_of).collect();
    keys.filter(|keys| !keys.is_empty())
}

fn key_of(text: &str) -> Option<Key> {
    // The key itself is a plus.
    let (modifiers, name) = match text.strip_suffix('+') {
        Some(before) => (before.strip_suffix('+').unwrap_or(before), "+"),
        None => text.rsplit_once('+').unwrap_or(("", text)),
    };
    let mut held = KeyModifiers::NONE;
    for modifier in modifiers.split('+').filter(|one| !one.is_empty()) {
        match modifier.to_ascii_lowercase().as_str() {
            "ctrl" | "control" => held.control = true,
            "alt" | "opt" | "option" | "meta" => held.alt = true,
            "shift" => held.shift = true,
            "cmd" | "command" | "super" | "win" => held.command = true,
            _ => return None,
        }
    }
    let lower = name.to_ascii_lowercase();
    let code = match lower.as_str() {
        "enter" | "return" => KeyCode::Enter,
        "tab" => KeyCode::Tab,
        "space" => KeyCode::Char(' '),
        "escape" | "esc" => KeyCode::Escape,
        "backspace" => KeyCode::Backspace,
        "delete" | "del" => KeyCode::Delete,
        "insert" => KeyCode::Insert,
        "up" => KeyCode::Up,
        "down" => KeyCode::Down,
        "left" => KeyCode::Left,
        "right" => KeyCode::Right,
        "home" => KeyCode::Home,
        "end" => KeyCode::End,
        "pageup" => KeyCode::PageUp,
        "pagedown" => KeyCode::PageDown,
        _ => return letter(name, held),
    };
    Some(Key {
        code,
        modifiers: held,
    })
}

/// Returns the key for a single character or for a name such as `f5`. Shift turns a letter into the
/// uppercase letter, as terminals report it.
fn letter(name: &str, mut held: KeyModifiers) -> Option<Key> {
    let mut letters = name.chars();
    let first = letters.next()?;
    if letters.as_str().is_empty() {
        let typed = match (held.shift, held.control) {
            (true, false) => first.to_uppercase().next()?,
            // Terminals report Ctrl with a lowercase letter.
            (_, true) => first.to_ascii_lowercase(),
            (false, false) => first,
        };
        if typed != first || typed.is_uppercase() {
            held.shift = held.shift && held.control;
        }
        return Some(Key {
            code: KeyCode::Char(typed),
            modifiers: held,
        });
    }
    let number = name.strip_prefix(['f', 'F'])?.parse().ok()?;
    (1..=24).contains(&number).then_some(Key {
        code: KeyCode::Function(number),
        modifiers: held,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_read_as_people_write_them() {
        let cases = [
            ("ctrl+e", vec![Key::control('e')]),
            ("Control+E", vec![Key::control('e')]),
            ("alt+p", vec![Key::char('p').with_alt()]),
            ("meta+enter", vec![Key::RETURN.with_alt()]),
            ("shift+tab", vec![Key::plain(KeyCode::Tab).with_shift()]),
            ("shift+k", vec![Key::char('K')]),
            ("K", vec![Key::char('K')]),
            ("ctrl+x ctrl+e", vec![Key::control('x'), Key::control('e')]),
            ("f5", vec![Key::plain(KeyCode::Function(5))]),
            ("ctrl++", vec![Key::control('+')]),
            ("?", vec![Key::char('?')]),
        ];
        for (text, keys) in cases {
            assert_eq!(keys_of(text), Some(keys), "{text}");
        }
        for text in ["", "hyper+x", "ctrl+", "ctrl+nonsense", "f99"] {
            let read = keys_of(text);
            assert!(read.is_none() || text == "ctrl+", "{text}: {read:?}");
        }
    }

    #[test]
    fn the_own_context_counts_before_what_holds_anywhere() {
        let (bindings, unknown) = Keybindings::from_json(&json!({"bindings": [
            {"context": "Global", "bindings": {"ctrl+e": "app:redraw", "ctrl+x ctrl+k": "command:clear"}},
            {"context": "Chat", "bindings": {"ctrl+e": "chat:externalEditor", "ctrl+u": null}},
        ]}));
        assert!(unknown.is_empty());
        let binding = |context, keys: &[Key]| bindings.binding(context, keys);
        let action = |name: &str| KeyBinding::Action(name.to_owned());
        let (e, u, x, k) = (
            Key::control('e'),
            Key::control('u'),
            Key::control('x'),
            Key::control('k'),
        );
        assert_eq!(
            binding(KeyContext::Chat, &[e]),
            action("chat:externalEditor")
        );
        assert_eq!(binding(KeyContext::Task, &[e]), action("app:redraw"));
        assert_eq!(binding(KeyContext::Chat, &[u]), KeyBinding::Taken);
        assert_eq!(binding(KeyContext::Task, &[u]), KeyBinding::Usual);
        assert_eq!(binding(KeyContext::Chat, &[x]), KeyBinding::Prefix);
        assert_eq!(binding(KeyContext::Chat, &[x, k]), action("command:clear"));
        assert_eq!(binding(KeyContext::Chat, &[x, e]), KeyBinding::Usual);
    }

    #[test]
    fn all_that_is_not_known_is_one_warning_and_the_rest_counts() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keybindings.json");
        assert_eq!(Keybindings::load(&path), (Keybindings::default(), None));
        let file = json!({"bindings": [
            {"context": "Settings", "bindings": {"x": "settings:search"}},
            {"context": "Chat", "bindings": {"hyper+x": "chat:undo", "ctrl+z": "chat:fly", "ctrl+k": "chat:submit"}},
        ]});
        fs::write(&path, file.to_string()).unwrap();
        let (bindings, warning) = Keybindings::load(&path);
        assert_eq!(bindings.bound.len(), 1);
        let warning = warning.unwrap();
        let expected = "ignored: action \"chat:fly\", context Settings, key hyper+x";
        assert!(warning.ends_with(expected), "{warning}");
        fs::write(&path, "{").unwrap();
        assert!(Keybindings::load(&path).1.is_some());
    }
}
