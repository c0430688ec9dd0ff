//! The local time zone.

use jiff::tz::TimeZone;

use crate::{Environment, event::EventEmitter};

/// The local time zone of schedules.
pub(super) enum ScheduleZone {
    /// The zone of the machine, which may change.
    Machine,
    Given(TimeZone),
}

impl ScheduleZone {
    pub(super) fn from_environment(environment: &Environment, events: &EventEmitter) -> Self {
        let Some(given) = environment.variable("TZ") else {
            return Self::Machine;
        };
        let name = given.trim().trim_start_matches(':');
        match TimeZone::get(name).or_else(|_| TimeZone::posix(name)) {
            Ok(zone) => Self::Given(zone),
            Err(_) => {
                events.warn(format!(
                    "TZ={given}: no such time zone; schedules go by that of the machine"
                ));
                Self::Machine
            }
        }
    }

    pub(super) fn get(&self) -> TimeZone {
        match self {
            Self::Machine => TimeZone::system(),
            Self::Given(zone) => zone.clone(),
        }
    }
}
