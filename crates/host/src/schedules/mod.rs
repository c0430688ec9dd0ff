//! Scheduled prompts, which are submitted between turns: at calendar times ([`cron`]), or after a
//! delay.
//!
//! The turn loop asks the [`SessionSchedules`] for prompts that are due; nothing here submits a prompt
//! itself. A job that was due during a turn fires once after it, regardless of how often it was
//! due. Each job is shifted a little by a hash of its id, so that not all sessions send requests at
//! the same time. Recurring jobs fire later. One-time jobs are shifted only if they are set to the
//! full or half hour, and fire earlier.

mod cron;
#[cfg(test)]
mod cron_tests;
mod jobs_file;
mod service;
#[cfg(test)]
mod tests;
mod zone;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use haft_agent::random_id;
use haft_contract::{ScheduleInfo, ScheduleStore, Schedules, ToolError};
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::{ScheduledPrompt, SessionClock, SessionConfig, event::EventEmitter};
use cron::CronExpression;
use jobs_file::{DurableJobs, StoredJob, read_session_jobs, write_session_jobs};
use zone::ScheduleZone;

/// The maximum number of schedules.
const MAX_COUNT: usize = 50;
/// The maximum length of a prompt in bytes.
const MAX_PROMPT: usize = 100_000;
/// The age at which a recurring job fires for the last time.
const EXPIRES_MS: i64 = 7 * 24 * 3_600_000;
/// The maximum delay of a recurring job.
const LATEST_MS: i64 = 30 * 60_000;
/// The maximum time by which a one-time job fires early, at the full and half hour.
const EARLIEST_MS: i64 = 90_000;
/// A clock that is put back by fewer milliseconds is ignored.
const WOBBLE_MS: i64 = 1_000;

/// The schedules of a session.
pub(crate) struct SessionSchedules {
    clock: Arc<dyn SessionClock>,
    zone: ScheduleZone,
    state: Mutex<ScheduleState>,
    changed: Notify,
    durable: DurableJobs,
    events: Arc<EventEmitter>,
}

#[derive(Default)]
struct ScheduleState {
    jobs: Vec<ScheduledJob>,
    /// The file for the jobs of the session, if they are stored.
    session_file: Option<PathBuf>,
    /// The last time read from the clock, in milliseconds since 1970.
    last_clock_time: i64,
    /// Whether the user was warned that the file contains jobs that haft did not write.
    has_warned_foreign: bool,
}

#[derive(Debug, Clone)]
struct ScheduledJob {
    stored: StoredJob,
    when: JobTime,
    durable: bool,
    /// The time it fires, in milliseconds since 1970.
    due: i64,
}

#[derive(Debug, Clone)]
enum JobTime {
    Calendar(CronExpression),
    /// Once, with this reason.
    Wakeup(String),
}

impl SessionSchedules {
    /// Opens the schedules of a session, with the durable jobs of its directory; `None` if the
    /// environment disables schedules.
    pub(crate) fn open(
        config: &SessionConfig,
        user_folder: &Path,
        clock: Arc<dyn SessionClock>,
        events: &Arc<EventEmitter>,
    ) -> Option<Arc<Self>> {
        if config.environment.is_on("CLAUDE_CODE_DISABLE_CRON") {
            return None;
        }
        let book = Self {
            zone: ScheduleZone::from_environment(&config.environment, events),
            clock,
            state: Mutex::default(),
            changed: Notify::new(),
            durable: DurableJobs::new(config.cwd.clone(), user_folder),
            events: Arc::clone(events),
        };
        let now = book.now();
        let mut state = book.state();
        state.last_clock_time = now;
        if let Err(why) = book.refresh(&mut state, now) {
            events.warn(format!("scheduled prompts are left out: {why}"));
        }
        drop(state);
        Some(Arc::new(book))
    }

    /// Returns the service for calls.
    pub(crate) fn service(self: &Arc<Self>) -> Arc<Schedules> {
        Arc::new(Schedules(Arc::clone(self) as Arc<dyn ScheduleStore>))
    }

    /// Sets the folder in which the session's jobs are stored, and restores the jobs in it.
    pub(crate) fn attach_folder(&self, session_folder: &Path) {
        self.restore_folder(session_folder);
        // Expired jobs are removed from the file.
        self.save(&self.state());
    }

    /// Restores the jobs in a folder without writing anything, before the session starts.
    pub(crate) fn restore_folder(&self, session_folder: &Path) {
        let file = session_folder.join("schedules.json");
        if self.state().session_file.as_ref() == Some(&file) {
            return;
        }
        let stored = read_session_jobs(&file).unwrap_or_else(|why| {
            self.events.warn(format!(
                "scheduled prompts are left out: {}: {why}",
                file.display()
            ));
            Vec::new()
        });
        let now = self.now();
        let mut state = self.state();
        for job in stored {
            self.restore(&mut state, job, false, now);
        }
        state.session_file = Some(file);
        drop(state);
        self.changed.notify_one();
    }

    /// Moves the schedules to another conversation of the session, and restores the jobs that it
    /// had. Nothing happens while that conversation has no messages: it is not stored, so no later
    /// session would find the jobs there.
    pub(crate) fn switch_folder(&self, session_folder: &Path) {
        let file = self.state().session_file.clone();
        // Without a stored file there is nothing to move.
        let Some(before) = file.filter(|file| !file.starts_with(session_folder)) else {
            return;
        };
        if !session_folder.with_extension("jsonl").exists() {
            return;
        }
        self.attach_folder(session_folder);
        // The previous conversation must not fire the jobs too when it is resumed.
        if let Err(error) = write_session_jobs(&before, &[]) {
            self.events.warn(format!(
                "scheduled prompts stay in {}: {error}",
                before.display()
            ));
        }
    }

    /// Waits until a job is due.
    pub(crate) async fn wait(&self) {
        loop {
            let Some(due) = self.next_due() else {
                self.changed.notified().await;
                continue;
            };
            if due <= self.now() {
                return;
            }
            let moment = SystemTime::UNIX_EPOCH + Duration::from_millis(due.unsigned_abs());
            tokio::select! {
                () = self.changed.notified() => {}
                () = self.clock.sleep_until(moment) => {}
            }
        }
    }

    /// Takes the prompt of the job that has been due the longest, if any.
    pub(crate) fn take_due(&self) -> Option<ScheduledPrompt> {
        let now = self.now();
        let mut state = self.state();
        self.detect_clock_change(&mut state, now);
        loop {
            let mut due: Vec<&ScheduledJob> =
                state.jobs.iter().filter(|job| job.due <= now).collect();
            due.sort_by_key(|job| job.due);
            let job = (*due.first()?).clone();
            if job.durable && !self.is_still_current(&mut state, &job, now) {
                continue;
            }
            return Some(self.fire(&mut state, &job, now));
        }
    }

    /// Returns whether a durable job still exists and this session fires it. Otherwise the job is
    /// rescheduled or removed.
    fn is_still_current(&self, state: &mut ScheduleState, job: &ScheduledJob, now: i64) -> bool {
        if let Err(why) = self.refresh(state, now) {
            self.events
                .warn(format!("scheduled prompts are left out: {why}"));
            state.jobs.retain(|one| !one.durable);
        }
        if !state.jobs.iter().any(|one| one.stored.id == job.stored.id) {
            return false;
        }
        if self.durable.is_mine() {
            return true;
        }
        // Another session of the directory fires it.
        let due = self.due_of(&job.stored, &job.when, now);
        match (job.stored.recurring, due) {
            (true, Some(due)) => state.set_due(&job.stored.id, due),
            _ => state.remove_job(&job.stored.id),
        }
        false
    }

    fn fire(&self, state: &mut ScheduleState, job: &ScheduledJob, now: i64) -> ScheduledPrompt {
        let is_expired = now >= job.stored.created_at.saturating_add(EXPIRES_MS);
        let next = match &job.when {
            JobTime::Calendar(_) if job.stored.recurring && !is_expired => {
                self.due_of(&job.stored, &job.when, now)
            }
            _ => None,
        };
        match next {
            Some(due) => state.set_due(&job.stored.id, due),
            None => {
                state.remove_job(&job.stored.id);
                if job.durable
                    && let Err(why) = self.durable.remove(&job.stored.id)
                {
                    self.events
                        .warn(format!("a scheduled prompt is not forgotten: {why}"));
                }
            }
        }
        self.save(state);
        ScheduledPrompt {
            id: job.stored.id.clone(),
            words: job.describe(),
            prompt: job.stored.prompt.clone(),
            is_last: job.stored.recurring && next.is_none(),
        }
    }

    fn next_due(&self) -> Option<i64> {
        let now = self.now();
        let mut state = self.state();
        self.detect_clock_change(&mut state, now);
        state.jobs.iter().map(|job| job.due).min()
    }

    /// Adjusts the jobs if the clock was put back; otherwise they would wait for times that have
    /// already passed.
    fn detect_clock_change(&self, state: &mut ScheduleState, now: i64) {
        let before = std::mem::replace(&mut state.last_clock_time, now);
        if now + WOBBLE_MS >= before {
            return;
        }
        for job in &mut state.jobs {
            match &job.when {
                JobTime::Calendar(_) => {
                    if let Some(due) = self.due_of(&job.stored, &job.when, now) {
                        job.due = job.due.min(due);
                    }
                }
                // A delay is independent of the clock.
                JobTime::Wakeup(_) => job.due -= before - now,
            }
        }
    }

    /// Updates the durable jobs from the file of the directory.
    fn refresh(&self, state: &mut ScheduleState, now: i64) -> Result<(), String> {
        let content = self.durable.read()?;
        if content.foreign > 0 && !std::mem::replace(&mut state.has_warned_foreign, true) {
            self.events.warn(format!(
                "{}: {} left out, because haft did not write {} for you here",
                self.durable.path().display(),
                match content.foreign {
                    1 => "1 scheduled prompt is".to_owned(),
                    many => format!("{many} scheduled prompts are"),
                },
                if content.foreign == 1 { "it" } else { "them" }
            ));
        }
        let stands = |id: &str| content.jobs.iter().any(|job| job.id == id);
        state
            .jobs
            .retain(|job| !job.durable || stands(&job.stored.id));
        for job in content.jobs {
            let known = state.jobs.iter().any(|known| known.stored.id == job.id);
            if !known && !self.restore(state, job.clone(), true, now) {
                self.durable.remove(&job.id)?;
            }
        }
        Ok(())
    }

    /// Restores a job of an earlier session. Times that passed in between do not fire. Returns
    /// `false` if the job has expired.
    fn restore(
        &self,
        state: &mut ScheduleState,
        stored: StoredJob,
        durable: bool,
        now: i64,
    ) -> bool {
        let Ok(cron) = CronExpression::parse(&stored.cron) else {
            return false;
        };
        let when = JobTime::Calendar(cron);
        let is_expired = now >= stored.created_at.saturating_add(EXPIRES_MS);
        if stored.recurring && is_expired {
            self.events.warn(format!(
                "the scheduled prompt {} has expired: it was created more than 7 days ago",
                stored.id
            ));
            return false;
        }
        // A one-time job keeps its time.
        let from = match stored.recurring {
            true => now,
            false => stored.created_at.min(now),
        };
        let due = self.due_of(&stored, &when, from);
        match due {
            Some(due) if stored.recurring || due >= now => {
                // Jobs beyond the maximum are ignored.
                if state.jobs.len() < MAX_COUNT {
                    state.jobs.push(ScheduledJob {
                        stored,
                        when,
                        durable,
                        due,
                    });
                }
                true
            }
            Some(due) => {
                self.events.warn(format!(
                    "the scheduled prompt {} was missed: it was due at {}, when no session was running",
                    stored.id,
                    self.format_time(due)
                ));
                false
            }
            None => false,
        }
    }

    /// Returns the next time a job fires after this time.
    fn due_of(&self, stored: &StoredJob, when: &JobTime, after: i64) -> Option<i64> {
        let JobTime::Calendar(cron) = when else {
            return None;
        };
        let zone = self.zone.get();
        let first = cron.next_after(Timestamp::from_millisecond(after).ok()?, &zone)?;
        let base = first.as_millisecond();
        let share = |most: i64| most * i64::from(shift_hash(&stored.id)) / i64::from(u32::MAX);
        if stored.recurring {
            let second = cron.next_after(first, &zone);
            let interval = second.map_or(i64::MAX, |second| second.as_millisecond() - base);
            return Some(base + share(LATEST_MS.min(interval / 2)));
        }
        let is_round = matches!(zone.to_datetime(first).minute(), 0 | 30);
        let early = if is_round { share(EARLIEST_MS) } else { 0 };
        Some((base - early).max(after))
    }

    /// Stores the jobs of the session.
    fn save(&self, state: &ScheduleState) {
        let Some(file) = &state.session_file else {
            return;
        };
        let jobs = state.jobs.iter().filter(|job| {
            let is_kept = matches!(job.when, JobTime::Calendar(_));
            is_kept && !job.durable
        });
        let jobs: Vec<StoredJob> = jobs.map(|job| job.stored.clone()).collect();
        if let Err(error) = write_session_jobs(file, &jobs) {
            self.events.warn(format!(
                "scheduled prompts could not be saved for later sessions: {}: {error}",
                file.display()
            ));
        }
    }

    fn info(&self, job: &ScheduledJob) -> ScheduleInfo {
        ScheduleInfo {
            id: job.stored.id.clone(),
            cron: job.stored.cron.clone(),
            words: job.describe(),
            prompt: job.stored.prompt.clone(),
            recurring: job.stored.recurring,
            durable: job.durable,
            next: self.format_time(job.due),
        }
    }

    /// Returns all schedules and wake-ups, for display.
    pub(crate) fn all(&self) -> Vec<ScheduleInfo> {
        self.state().jobs.iter().map(|job| self.info(job)).collect()
    }

    /// Deletes a schedule or wake-up. The error is human-readable.
    pub(crate) fn remove_schedule(&self, id: &str) -> Result<(), String> {
        let mut state = self.state();
        let known = state.jobs.iter().find(|job| job.stored.id == id);
        let durable = known
            .ok_or_else(|| format!("no schedule has the id {id:?}"))?
            .durable;
        if durable {
            self.durable.remove(id)?;
        }
        state.remove_job(id);
        self.save(&state);
        Ok(())
    }

    fn new_id(state: &ScheduleState) -> String {
        loop {
            let id: String = random_id().simple().to_string().chars().take(8).collect();
            if !state.jobs.iter().any(|job| job.stored.id == id) {
                return id;
            }
        }
    }

    fn now(&self) -> i64 {
        let since = self.clock.now().duration_since(SystemTime::UNIX_EPOCH);
        let since = since.unwrap_or_default().as_millis();
        i64::try_from(since).unwrap_or(i64::MAX)
    }

    /// Formats a time in ISO 8601, local time.
    fn format_time(&self, milliseconds: i64) -> String {
        let moment = Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::UNIX_EPOCH);
        let shown = moment.to_zoned(self.zone.get());
        shown.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }

    fn state(&self) -> MutexGuard<'_, ScheduleState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ScheduleState {
    fn check_capacity(&self) -> Result<(), ToolError> {
        match self.jobs.len() < MAX_COUNT {
            true => Ok(()),
            false => Err(ToolError::Refused(format!(
                "There are already {MAX_COUNT} schedules, which is the maximum. Delete one first (CronList, \
                 CronDelete)."
            ))),
        }
    }

    fn set_due(&mut self, id: &str, due: i64) {
        if let Some(job) = self.jobs.iter_mut().find(|job| job.stored.id == id) {
            job.due = due;
        }
    }

    fn remove_job(&mut self, id: &str) {
        self.jobs.retain(|job| job.stored.id != id);
    }
}

impl ScheduledJob {
    fn describe(&self) -> String {
        match &self.when {
            JobTime::Calendar(cron) if self.stored.recurring => cron.describe(),
            JobTime::Calendar(cron) => format!("once, at the next time of \"{}\"", cron.text()),
            JobTime::Wakeup(reason) if reason.trim().is_empty() => "a wake-up".to_owned(),
            JobTime::Wakeup(reason) => format!("a wake-up: {}", reason.trim()),
        }
    }
}

/// Returns a hash of an id, which determines the shift of a job.
fn shift_hash(id: &str) -> u32 {
    let hash = blake3::hash(id.as_bytes());
    let [a, b, c, d, ..] = *hash.as_bytes();
    u32::from_le_bytes([a, b, c, d])
}
