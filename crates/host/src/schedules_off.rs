//! Replaces `schedules` in a build without them.

use std::{path::Path, sync::Arc};

use haft_contract::{ScheduleInfo, Schedules};

use crate::{ScheduledPrompt, SessionClock, SessionConfig, event::Events};

/// The schedules of a session, which cannot exist in this build.
pub(crate) enum NoSchedules {}

pub(crate) use NoSchedules as ScheduleBook;

impl NoSchedules {
    pub(crate) fn open(
        _: &SessionConfig,
        _: &Path,
        _: Arc<dyn SessionClock>,
        _: &Arc<Events>,
    ) -> Option<Arc<Self>> {
        None
    }

    pub(crate) fn service(self: &Arc<Self>) -> Arc<Schedules> {
        match **self {}
    }

    pub(crate) fn belongs_to(&self, _: &Path) {
        match *self {}
    }

    pub(crate) fn take_up(&self, _: &Path) {
        match *self {}
    }

    pub(crate) fn follow(&self, _: &Path) {
        match *self {}
    }

    pub(crate) async fn wait(&self) {
        match *self {}
    }

    pub(crate) fn take_due(&self) -> Option<ScheduledPrompt> {
        match *self {}
    }

    pub(crate) fn all(&self) -> Vec<ScheduleInfo> {
        match *self {}
    }

    pub(crate) fn forget(&self, _: &str) -> Result<(), String> {
        match *self {}
    }
}
