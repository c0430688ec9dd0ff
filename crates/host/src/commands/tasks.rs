//! `/tasks`: lists and stops background tasks.

use super::{BuiltInCommand, CommandAction, CommandAnswer, blocking, short, table};
use crate::SessionInput;
use haft_contract::TaskKind;

pub(super) static TASKS: BuiltInCommand = BuiltInCommand {
    name: "tasks",
    hint: "[ID | stop ID]",
    description: "List running tasks and schedules, show the output of one, or stop it",
    acts: CommandAction::Anytime(|input, arguments| Box::pin(tasks(input, arguments))),
};

async fn tasks(input: &SessionInput, arguments: &str) -> CommandAnswer {
    let words: Vec<&str> = arguments.split_whitespace().collect();
    match words.as_slice() {
        [] => Ok(list(input)),
        ["stop", id] => {
            let (input, stopped) = (input.clone(), (*id).to_owned());
            let stop = move || input.stop_task(&stopped).map(|()| String::new());
            blocking(stop).await?;
            Ok(format!("The task {id} is being stopped."))
        }
        ["output", id] | [id] => {
            let (input, id) = (input.clone(), (*id).to_owned());
            blocking(move || input.task_output(&id)).await
        }
        _ => Err("usage: /tasks, /tasks ID or /tasks stop ID".to_owned()),
    }
}

fn list(input: &SessionInput) -> String {
    let tasks = input.tasks();
    if tasks.is_empty() {
        return "No task is running.".to_owned();
    }
    let rows = tasks.into_iter().map(|task| {
        let waited = match task.in_background {
            _ if task.kind == TaskKind::Schedule => "scheduled",
            true => "in the background",
            false => "in the foreground",
        };
        vec![
            task.id,
            task.kind.name().trim_start_matches("local_").to_owned(),
            short(&task.description, 60),
            waited.to_owned(),
        ]
    });
    table(&rows.collect::<Vec<_>>())
}
