//! Dates in the formats of transcripts and prompts, and random ids.

use haft_contract::CalendarTime;
use uuid::{Builder, Uuid};

/// Returns the current time as `2026-01-31T12:00:00.000Z`.
pub(crate) fn timestamp() -> String {
    CalendarTime::now().to_millisecond()
}

/// Returns the current date as `2026-01-31`.
pub(crate) fn today() -> String {
    CalendarTime::now().to_date()
}

/// Returns a random id for a message.
pub fn random_id() -> Uuid {
    let mut bytes = [0; 16];
    if getrandom::getrandom(&mut bytes).is_err() {
        // Without entropy the id is derived from the time, which is unique enough.
        return haft_contract::CallId::new().0;
    }
    Builder::from_random_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_4_and_differ() {
        assert_eq!(random_id().get_version_num(), 4);
        assert_ne!(random_id(), random_id());
    }
}
