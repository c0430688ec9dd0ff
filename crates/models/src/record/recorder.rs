//! Records the traffic of a model.

use std::{
    collections::HashMap,
    fmt,
    fs::File,
    io::{self, Write},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
};

use futures_util::StreamExt;
use haft_contract::CancellationToken;

use super::{RecordingLine, VERSION, parts};
use crate::{
    ErrorKind, EventStream, Model, ModelError, ModelRequest,
    stream_block::{StreamSender, generate},
};

/// A model whose requests and replies are recorded. API keys are not part of the recording.
#[derive(Debug, Clone)]
pub struct Recorder {
    model: Arc<dyn Model>,
    tape: Arc<Mutex<RecordingTape>>,
}

struct RecordingTape {
    out: Box<dyn Write + Send>,
    requests: usize,
    /// The numbers of the parts that are already recorded, by their JSON text.
    known: HashMap<String, usize>,
}

impl fmt::Debug for RecordingTape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tape")
            .field("requests", &self.requests)
            .finish_non_exhaustive()
    }
}

impl Recorder {
    /// Records to this file and replaces its contents. A new file is readable only by its owner.
    pub fn create(model: Arc<dyn Model>, path: &Path) -> Result<Self, ModelError> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let failed =
            |error| ModelError::local(format!("cannot record to {}: {error}", path.display()));
        let file = options.open(path).map_err(failed)?;
        // A file that existed keeps its permissions when it is opened.
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let metadata = file.metadata().map_err(failed)?;
            if metadata.is_file() && metadata.permissions().mode() & 0o077 != 0 {
                file.set_permissions(std::fs::Permissions::from_mode(0o600))
                    .map_err(failed)?;
            }
        }
        Self::new(model, Box::new(file))
    }

    /// Records to this writer.
    pub fn new(model: Arc<dyn Model>, out: Box<dyn Write + Send>) -> Result<Self, ModelError> {
        let mut tape = RecordingTape {
            out,
            requests: 0,
            known: HashMap::new(),
        };
        tape.write(&RecordingLine::Version(VERSION))
            .map_err(recording_failed)?;
        Ok(Self {
            model,
            tape: Arc::new(Mutex::new(tape)),
        })
    }

    fn write_tape<T>(
        &self,
        act: impl FnOnce(&mut RecordingTape) -> io::Result<T>,
    ) -> Result<T, ModelError> {
        let mut tape = self.tape.lock().unwrap_or_else(PoisonError::into_inner);
        act(&mut tape).map_err(recording_failed)
    }

    async fn run(
        self,
        request: ModelRequest,
        cancel: CancellationToken,
        out: StreamSender,
    ) -> Result<(), ModelError> {
        let number = self.write_tape(|tape| tape.request(&request))?;
        let mut events = self.model.stream(request, cancel);
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    self.write_tape(|tape| {
                        tape.write(&RecordingLine::Event {
                            request: number,
                            event: event.clone(),
                        })
                    })?;
                    out.send(event).await;
                }
                Err(error) => {
                    // A cancellation comes from the caller; it is not part of the model's reply.
                    if error.kind != ErrorKind::Cancelled {
                        let line = RecordingLine::Error {
                            request: number,
                            error: error.clone(),
                        };
                        self.write_tape(|tape| tape.write(&line))?;
                    }
                    return Err(error);
                }
            }
        }
        self.write_tape(|tape| tape.write(&RecordingLine::End { request: number }))
    }
}

fn recording_failed(error: io::Error) -> ModelError {
    ModelError::local(format!("the recording cannot be written: {error}"))
}

impl RecordingTape {
    fn request(&mut self, request: &ModelRequest) -> io::Result<usize> {
        let mut numbers = Vec::new();
        for (_, part) in parts(request) {
            let text = part.to_string();
            let next = self.known.len();
            let number = *self.known.entry(text).or_insert(next);
            if number == next {
                self.write(&RecordingLine::Part(part))?;
            }
            numbers.push(number);
        }
        let number = self.requests;
        self.requests += 1;
        self.write(&RecordingLine::Request {
            request: number,
            parts: numbers,
        })?;
        Ok(number)
    }

    /// Writes one line with one call, so that a killed session leaves only complete lines.
    fn write(&mut self, line: &RecordingLine) -> io::Result<()> {
        let mut json = serde_json::to_vec(line)?;
        json.push(b'\n');
        self.out.write_all(&json)
    }
}

impl Model for Recorder {
    fn stream(&self, request: ModelRequest, cancel: CancellationToken) -> EventStream {
        let recorder = self.clone();
        generate(move |out| recorder.run(request, cancel, out))
    }
}
