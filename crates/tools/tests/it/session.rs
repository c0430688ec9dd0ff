//! A project, services and one call after the other.

use std::{
    fs::File,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use haft_contract::{BoundCall, CallContext, DynTool, Services, ToolError, ToolOutput};
use haft_testkit::TempProject;
use serde_json::Value;

pub(crate) struct Session {
    pub(crate) project: TempProject,
    pub(crate) services: Services,
    /// Where the session keeps its undo journal.
    pub(crate) folder: TempProject,
}

/// How a call ended, as text: what the model reads.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Ok(String),
    /// Refused before permission was asked.
    Refused(String),
    Failed(String),
}

impl Said {
    pub(crate) fn ok(self) -> String {
        match self {
            Self::Ok(text) => text,
            other => panic!("not a success: {other:?}"),
        }
    }

    pub(crate) fn refused(self) -> String {
        match self {
            Self::Refused(text) => text,
            other => panic!("not refused: {other:?}"),
        }
    }

    pub(crate) fn failed(self) -> String {
        match self {
            Self::Failed(text) => text,
            other => panic!("not failed: {other:?}"),
        }
    }

    pub(crate) fn error(self) -> String {
        match self {
            Self::Ok(text) => panic!("a success: {text}"),
            Self::Refused(text) | Self::Failed(text) => text,
        }
    }
}

impl Session {
    pub(crate) fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let (project, folder) = (TempProject::new(files), TempProject::new([]));
        let services = haft_tools::with_services(Services::none(), folder.root(), project.root());
        Self {
            project,
            services,
            folder,
        }
    }

    pub(crate) fn context(&self) -> CallContext {
        let (mut cx, _updates) = CallContext::for_test(self.project.root());
        cx.services = self.services.clone();
        cx
    }

    /// Filled in, made absolute and bound, as by the engine.
    pub(crate) fn bind(&self, name: &str, mut input: Value) -> Box<dyn BoundCall> {
        let tool = tool(name);
        tool.backfill(&mut input);
        for parameter in tool.spec().profile.paths {
            if let Some(Value::String(path)) = input.get_mut(*parameter) {
                let absolute = self.project.root().join(&*path);
                let parts = absolute
                    .components()
                    .filter(|part| *part != Component::CurDir);
                *path = parts
                    .collect::<PathBuf>()
                    .into_os_string()
                    .into_string()
                    .unwrap();
            }
        }
        tool.bind(input).expect("a good input")
    }

    pub(crate) async fn output(&self, name: &str, input: Value) -> Result<ToolOutput, ToolError> {
        let (bound, cx) = (self.bind(name, input), self.context());
        bound.check(&cx).await?;
        bound.call(&cx).await
    }

    pub(crate) async fn say(&self, name: &str, input: Value) -> Said {
        match self.output(name, input).await {
            Ok(output) => Said::Ok(text_of(&output)),
            Err(ToolError::Refused(text)) => Said::Refused(text),
            Err(error) => Said::Failed(error.to_string()),
        }
    }

    pub(crate) async fn structured(&self, name: &str, input: Value) -> Value {
        let output = self.output(name, input).await.expect("a success");
        output.structured.expect("structured output")
    }

    /// Sets when something was last modified, in seconds after the epoch.
    pub(crate) fn set_modified(&self, name: &str, seconds: u64) {
        set_modified(&self.project.path(name), seconds);
    }

    /// The text with the project's folder as `[root]` and ids of calls as `[id]`.
    pub(crate) fn masked(&self, text: &str) -> String {
        let text = text.replace(self.project.root().to_str().unwrap(), "[root]");
        without_ids(&text)
    }
}

pub(crate) fn tool(name: &str) -> Arc<dyn DynTool> {
    haft_tools::all()
        .into_iter()
        .find(|tool| tool.spec().name == name)
        .expect("a built-in tool")
}

pub(crate) fn text_of(output: &ToolOutput) -> String {
    let [content] = output.content.as_slice() else {
        panic!("one block: {output:?}");
    };
    content.as_text().expect("text").to_owned()
}

fn without_ids(text: &str) -> String {
    let is_id = |word: &str| {
        let dashes: Vec<usize> = word.match_indices('-').map(|(at, _)| at).collect();
        word.len() == 36 && dashes == [8, 13, 18, 23]
    };
    text.split_inclusive(|c: char| !c.is_ascii_hexdigit() && c != '-')
        .map(|piece| {
            let word = piece.trim_end_matches(|c: char| !c.is_ascii_hexdigit() && c != '-');
            if is_id(word) {
                piece.replace(word, "[id]")
            } else {
                piece.to_owned()
            }
        })
        .collect()
}

fn set_modified(path: &Path, seconds: u64) {
    let time = UNIX_EPOCH + Duration::from_secs(seconds);
    File::open(path).unwrap().set_modified(time).unwrap();
}
