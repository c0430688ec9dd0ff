//! The schedule service that calls use.

use haft_contract::{NewSchedule, NewWakeup, ScheduleInfo, ScheduleStore, ToolError, WakeupInfo};
use jiff::Timestamp;

use super::{
    JobTime, MAX_PROMPT, ScheduledJob, SessionSchedules, cron::CronExpression, jobs_file::StoredJob,
};

impl ScheduleStore for SessionSchedules {
    fn check(&self, cron: &str) -> Result<(), ToolError> {
        let cron = CronExpression::parse(cron).map_err(ToolError::Refused)?;
        let now = Timestamp::from_millisecond(self.now()).unwrap_or(Timestamp::UNIX_EPOCH);
        match cron.next_after(now, &self.zone.get()) {
            Some(_) => Ok(()),
            None => Err(ToolError::Refused(format!(
                "`cron` {:?} never fires: no month has this day.",
                cron.text()
            ))),
        }
    }

    fn create(&self, new: NewSchedule) -> Result<ScheduleInfo, ToolError> {
        self.check(&new.cron)?;
        if new.prompt.trim().is_empty() {
            return Err(ToolError::Refused("`prompt` is empty.".to_owned()));
        }
        if new.prompt.len() > MAX_PROMPT {
            return Err(ToolError::Refused(format!(
                "`prompt` is too long: at most {MAX_PROMPT} bytes. Write it to a file and name that."
            )));
        }
        let cron = CronExpression::parse(&new.cron).map_err(ToolError::Refused)?;
        let now = self.now();
        let mut state = self.state();
        self.detect_clock_change(&mut state, now);
        if new.durable {
            self.refresh(&mut state, now).map_err(ToolError::Failed)?;
        }
        state.check_capacity()?;
        let stored = StoredJob {
            id: Self::new_id(&state),
            cron: cron.text(),
            prompt: new.prompt,
            created_at: now,
            recurring: new.recurring,
        };
        let when = JobTime::Calendar(cron);
        let due = self
            .due_of(&stored, &when, now)
            .ok_or_else(|| ToolError::Refused("`cron` never fires.".to_owned()))?;
        if new.durable {
            self.durable.add(&stored).map_err(|why| {
                ToolError::Failed(format!(
                    "The schedule was not created because it cannot be saved: {why}"
                ))
            })?;
        }
        let job = ScheduledJob {
            stored,
            when,
            durable: new.durable,
            due,
        };
        let info = self.info(&job);
        state.jobs.push(job);
        self.save(&state);
        drop(state);
        self.changed.notify_one();
        Ok(info)
    }

    fn delete(&self, id: &str) -> Result<(), ToolError> {
        let known = self.list()?;
        if !known.iter().any(|job| job.id == id) {
            let ids: Vec<&str> = known.iter().map(|job| &*job.id).collect();
            return Err(ToolError::Refused(match ids.is_empty() {
                true => format!("No schedule has the id {id:?}: none exists."),
                false => format!(
                    "No schedule has the id {id:?}. Existing ids: {}",
                    ids.join(", ")
                ),
            }));
        }
        self.remove_schedule(id).map_err(ToolError::Failed)
    }

    fn list(&self) -> Result<Vec<ScheduleInfo>, ToolError> {
        let mut state = self.state();
        let now = self.now();
        self.refresh(&mut state, now).map_err(ToolError::Failed)?;
        let jobs = state.jobs.iter();
        let jobs = jobs.filter(|job| matches!(job.when, JobTime::Calendar(_)));
        Ok(jobs.map(|job| self.info(job)).collect())
    }

    fn list_cached(&self) -> Vec<ScheduleInfo> {
        let mut all = self.all();
        all.retain(|job| !job.cron.is_empty());
        all
    }

    fn schedule_wakeup(&self, wakeup: NewWakeup) -> Result<WakeupInfo, ToolError> {
        if wakeup.prompt.trim().is_empty() || wakeup.prompt.len() > MAX_PROMPT {
            return Err(ToolError::Refused(format!(
                "`prompt` must not be empty, and at most {MAX_PROMPT} bytes long."
            )));
        }
        let now = self.now();
        let mut state = self.state();
        self.detect_clock_change(&mut state, now);
        state.check_capacity()?;
        let span = i64::try_from(wakeup.seconds).unwrap_or(i64::MAX / 2_000);
        let due = now.saturating_add(span.saturating_mul(1_000));
        let id = Self::new_id(&state);
        state.jobs.push(ScheduledJob {
            stored: StoredJob {
                id: id.clone(),
                cron: String::new(),
                prompt: wakeup.prompt,
                created_at: now,
                recurring: false,
            },
            when: JobTime::Wakeup(wakeup.reason),
            durable: false,
            due,
        });
        drop(state);
        self.changed.notify_one();
        Ok(WakeupInfo {
            id,
            due_ms: due,
            due: self.format_time(due),
        })
    }

    fn cancel_wakeups(&self) -> usize {
        let mut state = self.state();
        let before = state.jobs.len();
        state
            .jobs
            .retain(|job| matches!(job.when, JobTime::Calendar(_)));
        before - state.jobs.len()
    }
}
