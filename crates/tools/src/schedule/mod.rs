//! Scheduled prompts: `CronCreate`, `CronDelete`, `CronList`, `ScheduleWakeup`, based on
//! [`haft_contract::Schedules`].

mod cron_create;
mod cron_delete;
mod cron_list;
mod schedule_wakeup;

pub(crate) use cron_create::CronCreate;
pub(crate) use cron_delete::CronDelete;
pub(crate) use cron_list::CronList;
pub(crate) use schedule_wakeup::ScheduleWakeup;

use std::sync::Arc;

use haft_contract::{CallContext, ScheduleInfo, ScheduleStore, Schedules, ToolError};
use serde_json::{Value, json};

use crate::blocking::blocking;

/// Calls the schedule store on a thread for blocking work.
async fn run_on_store<T: Send + 'static>(
    cx: &CallContext,
    work: impl FnOnce(&dyn ScheduleStore) -> Result<T, ToolError> + Send + 'static,
) -> Result<T, ToolError> {
    let keeper = Arc::clone(&cx.services.get::<Schedules>()?.0);
    blocking(move || work(&*keeper)).await?
}

/// Returns a schedule for structured output.
fn described(job: &ScheduleInfo) -> Value {
    let mut described = json!({
        "id": job.id,
        "cron": job.cron,
        "humanSchedule": job.words,
        "prompt": job.prompt,
        "recurring": job.recurring,
    });
    if job.durable {
        described["durable"] = json!(true);
    }
    described["nextFireAt"] = json!(job.next);
    described
}
