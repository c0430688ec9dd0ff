//! Notifies the user, and sets the window title. Decides which control sequences to send, not when.

use std::time::Duration;

use haft_terminal::{
    Capabilities,
    paint::{NotifyChannel, ProgressState, TerminalControl},
};

/// The minimum duration of a run after which the user is notified of its end.
pub(crate) const LONG_RUN: Duration = Duration::from_secs(10);

/// If the terminal does not report its focus, a user who typed nothing for this long is assumed to
/// be using another window.
const ELSEWHERE: Duration = Duration::from_secs(5);

/// Returns whether the user is probably using another window. `is_focused` is the terminal's
/// report, if any.
pub(crate) fn is_elsewhere(is_focused: Option<bool>, since_last_key: Duration) -> bool {
    match is_focused {
        Some(is_focused) => !is_focused,
        None => since_last_key >= ELSEWHERE,
    }
}

/// Returns the controls of a notification, according to the setting `preferredNotifChannel`.
pub(crate) fn notice(
    text: &str,
    capabilities: &Capabilities,
    preferred: Option<&str>,
) -> Vec<TerminalControl> {
    let (bell, channel) = match preferred {
        Some("notifications_disabled") => (false, None),
        Some("terminal_bell") => (true, None),
        Some("iterm2") => (false, Some(NotifyChannel::Osc9)),
        Some("iterm2_with_bell") => (true, Some(NotifyChannel::Osc9)),
        Some("kitty") => (false, Some(NotifyChannel::Osc99)),
        Some("ghostty") => (false, Some(NotifyChannel::Osc777)),
        _ => (true, Some(capabilities.notices)),
    };
    let mut controls = Vec::new();
    if bell {
        controls.push(TerminalControl::Bell);
    }
    controls.extend(channel.map(|channel| TerminalControl::Notify {
        channel,
        text: text.to_owned(),
        in_tmux: capabilities.in_tmux,
    }));
    controls
}

/// Returns the window title: the subject, and a mark while a run is in progress.
pub(crate) fn title(about: &str, folder: &str, is_working: bool) -> TerminalControl {
    let about: Vec<&str> = about.split_whitespace().collect();
    let about: String = about.join(" ").chars().take(60).collect();
    let about = if about.is_empty() { folder } else { &about };
    let mark = if is_working { "* " } else { "" };
    TerminalControl::Title(format!("{mark}{about}"))
}

/// Returns the progress bar of the window, if enabled. It is off by default, because some terminals
/// show a notification instead.
pub(crate) fn progress(state: ProgressState, is_enabled: Option<bool>) -> Option<TerminalControl> {
    (is_enabled == Some(true)).then_some(TerminalControl::Progress(state))
}

#[cfg(test)]
mod tests {
    use haft_terminal::TerminalEnvironment;

    use super::*;

    fn bytes(variables: &[(&str, &str)], preferred: Option<&str>) -> String {
        let get = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let capabilities = Capabilities::from_environment(&TerminalEnvironment::new(&get));
        let mut out = Vec::new();
        for control in notice("done", &capabilities, preferred) {
            control.write(&mut out);
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_channel_is_that_of_the_terminal_or_of_the_settings() {
        type NoticeCase<'a> = (&'a [(&'a str, &'a str)], Option<&'a str>, &'a str);
        let cases: [NoticeCase<'_>; 8] = [
            (&[], None, "\x07\x1b]9;done\x07"),
            (&[("TERM", "xterm-kitty")], None, "\x07\x1b]99;;done\x07"),
            (
                &[("TERM", "rxvt-unicode")],
                Some("auto"),
                "\x07\x1b]777;notify;done;\x07",
            ),
            (
                &[("TMUX", "x")],
                None,
                "\x07\x1bPtmux;\x1b\x1b]9;done\x07\x1b\\",
            ),
            (&[], Some("terminal_bell"), "\x07"),
            (&[], Some("iterm2"), "\x1b]9;done\x07"),
            (&[], Some("iterm2_with_bell"), "\x07\x1b]9;done\x07"),
            (&[], Some("notifications_disabled"), ""),
        ];
        for (variables, preferred, expected) in cases {
            assert_eq!(
                bytes(variables, preferred),
                expected,
                "{variables:?} {preferred:?}"
            );
        }
    }

    #[test]
    fn one_who_looks_is_not_called() {
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(6));
        assert!(is_elsewhere(Some(false), short) && !is_elsewhere(Some(true), long));
        assert!(is_elsewhere(None, long) && !is_elsewhere(None, short));
    }

    #[test]
    fn the_title_is_one_short_line() {
        let title = title("Why does\nthe test fail?", "shop", true);
        assert_eq!(
            title,
            TerminalControl::Title("* Why does the test fail?".into())
        );
        assert_eq!(
            super::title(" ", "shop", false),
            TerminalControl::Title("shop".into())
        );
        assert_eq!(progress(ProgressState::Busy, None), None);
        assert!(progress(ProgressState::Busy, Some(true)).is_some());
    }
}
