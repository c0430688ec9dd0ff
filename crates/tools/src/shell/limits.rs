//! The limits for the run time and the shown output of commands, as set by variables.

use std::time::Duration;

use haft_sandbox::ResourceLimits;

/// The default lifetime of a background task.
pub(crate) const BACKGROUND: Duration = Duration::from_secs(30 * 60);
/// The maximum lifetime of a background task.
pub(crate) const MAX_BACKGROUND: Duration = Duration::from_secs(2 * 60 * 60);

/// The limits of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CommandLimits {
    /// The default timeout of a command.
    pub(crate) timeout: Duration,
    /// The maximum timeout that a call can request.
    pub(crate) max_timeout: Duration,
    /// The maximum length of a successful command's output in the result, in characters.
    pub(crate) output: usize,
    /// The maximum length of a failed command's output in the result, in characters.
    pub(crate) failed_output: usize,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self::read(|_| None)
    }
}

impl CommandLimits {
    /// Reads the limits from variables (the caller decides their order: settings first, then our
    /// own environment). A value that is not a positive whole number is ignored.
    pub(crate) fn read(variable: impl Fn(&str) -> Option<String>) -> Self {
        let number = |name: &str| {
            let value = variable(name)?.trim().parse::<u64>().ok();
            value.filter(|number| *number > 0)
        };
        let timeout = Duration::from_millis(number("BASH_DEFAULT_TIMEOUT_MS").unwrap_or(120_000));
        let longest = Duration::from_millis(number("BASH_MAX_TIMEOUT_MS").unwrap_or(600_000));
        let output = number("BASH_MAX_OUTPUT_LENGTH").unwrap_or(30_000);
        Self {
            timeout,
            // A default above the maximum is intended, so it raises the maximum.
            max_timeout: longest.max(timeout),
            output: usize::try_from(output.min(150_000)).unwrap_or(150_000),
            failed_output: 10_000,
        }
    }

    /// Returns the timeout of a foreground command. A value above the maximum is reduced to it.
    pub(crate) fn foreground(&self, milliseconds: Option<f64>) -> Duration {
        match milliseconds.and_then(duration) {
            Some(asked) => asked.min(self.max_timeout),
            None => self.timeout,
        }
    }

    /// Returns the lifetime of a background task.
    pub(crate) fn background(milliseconds: Option<f64>) -> Duration {
        match milliseconds.and_then(duration) {
            Some(asked) => asked.min(MAX_BACKGROUND),
            None => BACKGROUND,
        }
    }
}

/// Returns the maximum memory and processes of one command, from the variables
/// `HAFT_COMMAND_MEMORY_MB` and `HAFT_COMMAND_PROCESSES`. A value that is not a positive whole
/// number is ignored.
pub(crate) fn resources(variable: impl Fn(&str) -> Option<String>) -> ResourceLimits {
    let number = |name: &str| {
        let value = variable(name)?.trim().parse::<u64>().ok();
        value.filter(|number| *number > 0)
    };
    let default = ResourceLimits::default();
    let memory = number("HAFT_COMMAND_MEMORY_MB");
    ResourceLimits {
        memory: memory.map_or(default.memory, |megabytes| {
            megabytes.saturating_mul(1_000_000)
        }),
        tasks: number("HAFT_COMMAND_PROCESSES").unwrap_or(default.tasks),
    }
}

/// Converts a number of milliseconds from a model. Returns `None` for zero and for values that are
/// not a duration.
fn duration(milliseconds: f64) -> Option<Duration> {
    if milliseconds.is_nan() || milliseconds < 1.0 {
        return None;
    }
    // A number that is too large for a duration saturates, and is reduced to the maximum.
    Some(Duration::from_millis(milliseconds as u64))
}

/// Formats a duration for users and models: `2m 0s`, `45s`, `1.5s`, `250ms`, `1h 0m 0s`.
pub(crate) fn format(time: Duration) -> String {
    let (seconds, milliseconds) = (time.as_secs(), time.subsec_millis());
    match seconds {
        0 => format!("{milliseconds}ms"),
        1..10 if milliseconds >= 100 => format!("{seconds}.{}s", milliseconds / 100),
        1..60 => format!("{seconds}s"),
        60..3600 => format!("{}m {}s", seconds / 60, seconds % 60),
        _ => format!(
            "{}h {}m {}s",
            seconds / 3600,
            seconds / 60 % 60,
            seconds % 60
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(variables: &[(&str, &str)]) -> CommandLimits {
        CommandLimits::read(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    fn milliseconds(limits: CommandLimits) -> (u128, u128, usize) {
        let CommandLimits {
            timeout,
            max_timeout: longest,
            output,
            failed_output,
        } = limits;
        assert_eq!(failed_output, 10_000);
        (timeout.as_millis(), longest.as_millis(), output)
    }

    #[test]
    fn variables_set_the_limits_and_nonsense_is_as_if_not_said() {
        let default = "BASH_DEFAULT_TIMEOUT_MS";
        let longest = "BASH_MAX_TIMEOUT_MS";
        let output = "BASH_MAX_OUTPUT_LENGTH";
        let cases: [(&[(&str, &str)], _); 9] = [
            (&[], (120_000, 600_000, 30_000)),
            (&[(default, "5000")], (5000, 600_000, 30_000)),
            (&[(default, "900000")], (900_000, 900_000, 30_000)),
            (&[(longest, "700000")], (120_000, 700_000, 30_000)),
            (&[(longest, "1000")], (120_000, 120_000, 30_000)),
            (&[(default, " 7 "), (longest, "x")], (7, 600_000, 30_000)),
            (
                &[(default, "0"), (longest, "-1")],
                (120_000, 600_000, 30_000),
            ),
            (&[(output, "999999")], (120_000, 600_000, 150_000)),
            (&[(output, "100")], (120_000, 600_000, 100)),
        ];
        for (variables, expected) in cases {
            assert_eq!(milliseconds(limits(variables)), expected, "{variables:?}");
        }
    }

    #[test]
    fn what_is_asked_for_is_cut_and_not_refused() {
        let limits = CommandLimits::default();
        let foreground = |asked| limits.foreground(asked).as_millis();
        assert_eq!(foreground(None), 120_000);
        assert_eq!(foreground(Some(1500.7)), 1500);
        assert_eq!(foreground(Some(1e30)), 600_000);
        for nothing in [0.0, -5.0, f64::NAN] {
            assert_eq!(foreground(Some(nothing)), 120_000);
        }
        let background = |asked| CommandLimits::background(asked).as_millis();
        assert_eq!(background(None), 1_800_000);
        assert_eq!(background(Some(60_000.0)), 60_000);
        assert_eq!(background(Some(1e9)), 7_200_000);
    }

    #[test]
    fn times_are_put_as_people_say_them() {
        let cases = [
            (0, "0ms"),
            (250, "250ms"),
            (1_000, "1s"),
            (1_560, "1.5s"),
            (59_900, "59s"),
            (120_000, "2m 0s"),
            (3_599_999, "59m 59s"),
            (3_600_000, "1h 0m 0s"),
            (7_325_000, "2h 2m 5s"),
        ];
        for (milliseconds, expected) in cases {
            assert_eq!(format(Duration::from_millis(milliseconds)), expected);
        }
    }
}
