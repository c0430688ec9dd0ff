//! Prompts that are said later, between turns: at times of a calendar ([`cron`]), or after a while.
//!
//! What is due is asked of the [`ScheduleBook`] by the one who runs turns; nothing here says anything by itself.
//! A job that was due while a turn ran is said once when it is over, however often it was due. Each is a little
//! off its time, by its id, so that not everyone asks at the same moment: a recurring job late, one that is said
//! once early, and then only at the full and the half hour.

mod cron;
#[cfg(test)]
mod cron_tests;
mod jobs_file;
mod keeper;
#[cfg(test)]
mod tests;
mod zone;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use haft_agent::random_id;
use haft_contract::{KeepSchedules, ScheduleInfo, Schedules, ToolError};
use jiff::Timestamp;
use tokio::sync::Notify;

use crate::{ScheduledPrompt, SessionClock, SessionConfig, event::Events};
use cron::CronExpression;
use jobs_file::{DurableJobs, StoredJob, read_session_jobs, write_session_jobs};
use zone::ScheduleZone;

/// So many schedules there may be.
const MOST: usize = 50;
/// The longest prompt, in bytes.
const LONGEST_PROMPT: usize = 100_000;
/// After so long a recurring job is said once more, and forgotten.
const EXPIRES_MS: i64 = 7 * 24 * 3_600_000;
/// A recurring job is at most so late…
const LATEST_MS: i64 = 30 * 60_000;
/// …and one that is said once so early, at the full and the half hour.
const EARLIEST_MS: i64 = 90_000;
/// A clock that goes back by less is not worth a word, in milliseconds.
const WOBBLE_MS: i64 = 1_000;

/// The schedules of a session.
pub(crate) struct ScheduleBook {
    clock: Arc<dyn SessionClock>,
    zone: ScheduleZone,
    state: Mutex<BookState>,
    changed: Notify,
    durable: DurableJobs,
    events: Arc<Events>,
}

#[derive(Default)]
struct BookState {
    jobs: Vec<ScheduledJob>,
    /// Where those of the session are kept, if they are.
    session_file: Option<PathBuf>,
    /// What the clock said last, in milliseconds since 1970.
    seen: i64,
    /// It was said that the file holds jobs of others.
    told_foreign: bool,
}

#[derive(Debug, Clone)]
struct ScheduledJob {
    stored: StoredJob,
    when: JobTime,
    durable: bool,
    /// When it is said, in milliseconds since 1970.
    due: i64,
}

#[derive(Debug, Clone)]
enum JobTime {
    Calendar(CronExpression),
    /// Once, for this reason.
    Wakeup(String),
}

impl ScheduleBook {
    /// The book of a session, with the durable jobs of its directory; `None` where the environment wants none.
    pub(crate) fn open(
        config: &SessionConfig,
        user_folder: &Path,
        clock: Arc<dyn SessionClock>,
        events: &Arc<Events>,
    ) -> Option<Arc<Self>> {
        if config.environment.is_on("CLAUDE_CODE_DISABLE_CRON") {
            return None;
        }
        let book = Self {
            zone: ScheduleZone::of(&config.environment, events),
            clock,
            state: Mutex::default(),
            changed: Notify::new(),
            durable: DurableJobs::new(config.cwd.clone(), user_folder),
            events: Arc::clone(events),
        };
        let now = book.now();
        let mut state = book.state();
        state.seen = now;
        if let Err(why) = book.refresh(&mut state, now) {
            events.warn(format!("scheduled prompts are left out: {why}"));
        }
        drop(state);
        Some(Arc::new(book))
    }

    /// The service for calls.
    pub(crate) fn service(self: &Arc<Self>) -> Arc<Schedules> {
        Arc::new(Schedules(Arc::clone(self) as Arc<dyn KeepSchedules>))
    }

    /// The session keeps what it keeps in this folder: takes over the jobs that it had before.
    pub(crate) fn belongs_to(&self, session_folder: &Path) {
        self.take_up(session_folder);
        // What is over by now is kept no longer.
        self.save(&self.state());
    }

    /// The same, when nothing of the session has begun: nothing is written.
    pub(crate) fn take_up(&self, session_folder: &Path) {
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

    /// Another conversation goes on in the session: its schedules go with it, and those that the other had are
    /// taken over. As long as nothing was said in it, it is not kept: then no later session would find them there.
    pub(crate) fn follow(&self, session_folder: &Path) {
        let file = self.state().session_file.clone();
        // Where nothing is kept, nothing is to be moved.
        let Some(before) = file.filter(|file| !file.starts_with(session_folder)) else {
            return;
        };
        if !session_folder.with_extension("jsonl").exists() {
            return;
        }
        self.belongs_to(session_folder);
        // The conversation that ended must not say them too when it is taken up again.
        if let Err(error) = write_session_jobs(&before, &[]) {
            self.events.warn(format!(
                "scheduled prompts stay in {}: {error}",
                before.display()
            ));
        }
    }

    /// Waits until something is due.
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
                () = self.clock.until(moment) => {}
            }
        }
    }

    /// Takes what is due, if anything is: the job that has waited longest.
    pub(crate) fn take_due(&self) -> Option<ScheduledPrompt> {
        let now = self.now();
        let mut state = self.state();
        self.note_time(&mut state, now);
        loop {
            let mut due: Vec<&ScheduledJob> =
                state.jobs.iter().filter(|job| job.due <= now).collect();
            due.sort_by_key(|job| job.due);
            let job = (*due.first()?).clone();
            if job.durable && !self.still_stands(&mut state, &job, now) {
                continue;
            }
            return Some(self.fire(&mut state, &job, now));
        }
    }

    /// Is a durable job still there, and ours to say? If it is not, its next time is waited for.
    fn still_stands(&self, state: &mut BookState, job: &ScheduledJob, now: i64) -> bool {
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
        // Another session of the directory says it.
        let due = self.due_of(&job.stored, &job.when, now);
        match (job.stored.recurring, due) {
            (true, Some(due)) => state.set_due(&job.stored.id, due),
            _ => state.forget(&job.stored.id),
        }
        false
    }

    fn fire(&self, state: &mut BookState, job: &ScheduledJob, now: i64) -> ScheduledPrompt {
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
                state.forget(&job.stored.id);
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
            words: job.words(),
            prompt: job.stored.prompt.clone(),
            is_last: job.stored.recurring && next.is_none(),
        }
    }

    fn next_due(&self) -> Option<i64> {
        let now = self.now();
        let mut state = self.state();
        self.note_time(&mut state, now);
        state.jobs.iter().map(|job| job.due).min()
    }

    /// A clock that was put back would keep jobs waiting for a time that it has shown already.
    fn note_time(&self, state: &mut BookState, now: i64) {
        let before = std::mem::replace(&mut state.seen, now);
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
                // After a while, whatever the clock shows.
                JobTime::Wakeup(_) => job.due -= before - now,
            }
        }
    }

    /// Takes over what the file of the directory says.
    fn refresh(&self, state: &mut BookState, now: i64) -> Result<(), String> {
        let content = self.durable.read()?;
        if content.foreign > 0 && !std::mem::replace(&mut state.told_foreign, true) {
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

    /// Takes up a job of an earlier session. What was due meanwhile is not said; `false`: it is over.
    fn restore(&self, state: &mut BookState, stored: StoredJob, durable: bool, now: i64) -> bool {
        let Ok(cron) = CronExpression::parse(&stored.cron) else {
            return false;
        };
        let when = JobTime::Calendar(cron);
        let is_expired = now >= stored.created_at.saturating_add(EXPIRES_MS);
        if stored.recurring && is_expired {
            self.events.warn(format!(
                "the scheduled prompt {} is over: it was made more than 7 days ago",
                stored.id
            ));
            return false;
        }
        // One that is said once keeps its time.
        let from = match stored.recurring {
            true => now,
            false => stored.created_at.min(now),
        };
        let due = self.due_of(&stored, &when, from);
        match due {
            Some(due) if stored.recurring || due >= now => {
                // A session that had more than that was not ours.
                if state.jobs.len() < MOST {
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
                    "the scheduled prompt {} is over: it was due at {}, when no session ran",
                    stored.id,
                    self.written(due)
                ));
                false
            }
            None => false,
        }
    }

    /// When a job is said, after this moment.
    fn due_of(&self, stored: &StoredJob, when: &JobTime, after: i64) -> Option<i64> {
        let JobTime::Calendar(cron) = when else {
            return None;
        };
        let zone = self.zone.get();
        let first = cron.next_after(Timestamp::from_millisecond(after).ok()?, &zone)?;
        let base = first.as_millisecond();
        let share = |most: i64| most * i64::from(share_of(&stored.id)) / i64::from(u32::MAX);
        if stored.recurring {
            let second = cron.next_after(first, &zone);
            let interval = second.map_or(i64::MAX, |second| second.as_millisecond() - base);
            return Some(base + share(LATEST_MS.min(interval / 2)));
        }
        let is_round = matches!(zone.to_datetime(first).minute(), 0 | 30);
        let early = if is_round { share(EARLIEST_MS) } else { 0 };
        Some((base - early).max(after))
    }

    /// Keeps the jobs of the session.
    fn save(&self, state: &BookState) {
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
                "scheduled prompts are not kept for a later session: {}: {error}",
                file.display()
            ));
        }
    }

    fn info(&self, job: &ScheduledJob) -> ScheduleInfo {
        ScheduleInfo {
            id: job.stored.id.clone(),
            cron: job.stored.cron.clone(),
            words: job.words(),
            prompt: job.stored.prompt.clone(),
            recurring: job.stored.recurring,
            durable: job.durable,
            next: self.written(job.due),
        }
    }

    /// All that is kept, wake-ups too: for people.
    pub(crate) fn all(&self) -> Vec<ScheduleInfo> {
        self.state().jobs.iter().map(|job| self.info(job)).collect()
    }

    /// Forgets a schedule or wake-up; the error is for people.
    pub(crate) fn forget(&self, id: &str) -> Result<(), String> {
        let mut state = self.state();
        let known = state.jobs.iter().find(|job| job.stored.id == id);
        let durable = known
            .ok_or_else(|| format!("there is no schedule {id:?}"))?
            .durable;
        if durable {
            self.durable.remove(id)?;
        }
        state.forget(id);
        self.save(&state);
        Ok(())
    }

    fn new_id(state: &BookState) -> String {
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

    /// A moment as ISO writes it, local time.
    fn written(&self, milliseconds: i64) -> String {
        let moment = Timestamp::from_millisecond(milliseconds).unwrap_or(Timestamp::UNIX_EPOCH);
        let shown = moment.to_zoned(self.zone.get());
        shown.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
    }

    fn state(&self) -> MutexGuard<'_, BookState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl BookState {
    fn has_room(&self) -> Result<(), ToolError> {
        match self.jobs.len() < MOST {
            true => Ok(()),
            false => Err(ToolError::Refused(format!(
                "There are {MOST} schedules already, and no more can be kept. Delete one first (CronList, \
                 CronDelete)."
            ))),
        }
    }

    fn set_due(&mut self, id: &str, due: i64) {
        if let Some(job) = self.jobs.iter_mut().find(|job| job.stored.id == id) {
            job.due = due;
        }
    }

    fn forget(&mut self, id: &str) {
        self.jobs.retain(|job| job.stored.id != id);
    }
}

impl ScheduledJob {
    fn words(&self) -> String {
        match &self.when {
            JobTime::Calendar(cron) if self.stored.recurring => cron.words(),
            JobTime::Calendar(cron) => format!("once, at the next time of \"{}\"", cron.text()),
            JobTime::Wakeup(reason) if reason.trim().is_empty() => "a wake-up".to_owned(),
            JobTime::Wakeup(reason) => format!("a wake-up: {}", reason.trim()),
        }
    }
}

/// What an id says of how far a job is off its time.
fn share_of(id: &str) -> u32 {
    let hash = blake3::hash(id.as_bytes());
    let [a, b, c, d, ..] = *hash.as_bytes();
    u32::from_le_bytes([a, b, c, d])
}
