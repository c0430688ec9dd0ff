//! Replaces `schedules` in a build without them.

use std::{path::Path, sync::Arc};

use haft_contract::{ScheduleInfo, Schedules};

use crate::{ScheduledPrompt, SessionClock, SessionConfig, event::EventEmitter};

/// The schedules of a session, which cannot exist in this build.
pub(crate) enum NoSchedules {}

pub(crate) use NoSchedules as SessionSchedules;

impl NoSchedules {
    pub(crate) fn open(
        _: &SessionConfig,
        _: &Path,
        _: Arc<dyn SessionClock>,
        _: &Arc<EventEmitter>,
    ) -> Option<Arc<Self>> {
        None
    }

    pub(crate) fn service(self: &Arc<Self>) -> Arc<Schedules> {
        match **self {}
    }

    pub(crate) fn attach_folder(&self, _: &Path) {
        match *self {}
    }

    pub(crate) fn restore_folder(&self, _: &Path) {
        match *self {}
    }

    pub(crate) fn switch_folder(&self, _: &Path) {
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

    pub(crate) fn remove_schedule(&self, _: &str) -> Result<(), String> {
        match *self {}
    }
}
