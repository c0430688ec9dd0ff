//! The folder of one command: `log` and `objects/`.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use rustix::{
    fs::{FlockOperation, flock},
    io::Errno,
};

use crate::{UnitHeader, WitnessLog, log::encode};

const LOG: &str = "log";
const OBJECTS: &str = "objects";
const OWNER: &str = "owner";
/// The time limit for the guard of a dead process to exit, and the pause between attempts.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);
const LOCK_RETRY_PAUSE: Duration = Duration::from_millis(5);

/// The folder of one command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitFolder(PathBuf);

impl UnitFolder {
    /// Uses a folder that exists.
    pub fn open(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// Creates the folder, and a log with this first line.
    pub fn create(path: impl Into<PathBuf>, header: &UnitHeader) -> io::Result<(Self, OpenUnit)> {
        let folder = Self(path.into());
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(folder.objects())?;
        let create = |path: PathBuf| {
            let mut options = OpenOptions::new();
            options.append(true).create_new(true).mode(0o600).open(path)
        };
        let owner = create(folder.0.join(OWNER))?;
        flock(&owner, FlockOperation::NonBlockingLockExclusive)?;
        let mut log = create(folder.log())?;
        flock(&log, FlockOperation::NonBlockingLockExclusive)?;
        log.write_all(&encode(header)?)?;
        Ok((folder, OpenUnit { log, _owner: owner }))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path of the log.
    pub fn log(&self) -> PathBuf {
        self.0.join(LOG)
    }

    /// Returns the directory of the stored files.
    pub fn objects(&self) -> PathBuf {
        self.0.join(OBJECTS)
    }

    /// Reads the first line of the log.
    pub fn read_header(&self) -> io::Result<UnitHeader> {
        let mut line = Vec::new();
        BufReader::new(File::open(self.log())?).read_until(b'\n', &mut line)?;
        Ok(serde_json::from_slice(&line)?)
    }

    /// Reads the log.
    pub fn read(&self) -> io::Result<WitnessLog> {
        WitnessLog::parse(&fs::read(self.log())?)
    }

    /// Waits a moment until no guard writes the log of a process that has exited, and locks it.
    /// `None` if the process or a guard still runs.
    pub fn lock_abandoned(&self) -> io::Result<Option<OpenUnit>> {
        let open = |path: PathBuf| OpenOptions::new().append(true).open(path);
        let owner = open(self.0.join(OWNER))?;
        if !try_lock(&owner)? {
            return Ok(None);
        }
        let log = open(self.log())?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        while !try_lock(&log)? {
            if Instant::now() >= deadline {
                return Ok(None);
            }
            std::thread::sleep(LOCK_RETRY_PAUSE);
        }
        Ok(Some(OpenUnit { log, _owner: owner }))
    }
}

/// A unit that this process owns. No other process reads its log until this value is dropped.
#[derive(Debug)]
pub struct OpenUnit {
    /// The log, for the guard. It stays locked until the guard has closed it, too.
    pub log: File,
    /// Locked by our process alone.
    _owner: File,
}

fn try_lock(file: &File) -> io::Result<bool> {
    loop {
        match flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(true),
            Err(Errno::WOULDBLOCK) => return Ok(false),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{LogLine, WitnessedChange};

    fn header() -> UnitHeader {
        UnitHeader {
            call: "call_1".to_owned(),
            tool: "Bash".to_owned(),
            about: "rm a".to_owned(),
            time: 1,
            roots: vec![Path::new("/p").into()],
        }
    }

    #[test]
    fn a_unit_is_abandoned_only_when_owner_and_guard_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, open) = UnitFolder::create(dir.path().join("unit"), &header()).unwrap();
        assert!(folder.lock_abandoned().unwrap().is_none());
        // A guard closes the log a moment after its owner was killed.
        let guard = open.log.try_clone().unwrap();
        let closing = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(30));
            drop(guard);
        });
        drop(open);
        let locked = folder.lock_abandoned().unwrap();
        assert!(closing.is_finished());
        assert!(locked.is_some());
        assert!(folder.lock_abandoned().unwrap().is_none());
        closing.join().unwrap();
    }

    #[test]
    fn a_log_that_was_cut_off_is_read_up_to_there() {
        let dir = tempfile::tempdir().unwrap();
        let (folder, mut open) = UnitFolder::create(dir.path().join("unit"), &header()).unwrap();
        let free = |path: &str| WitnessedChange::Name {
            path: Path::new(path).into(),
            entry: None,
        };
        let changes = [
            free("/p/a"),
            free("/p/b"),
            WitnessedChange::Failed { line: 1 },
            WitnessedChange::End,
        ];
        for (number, change) in (1..).zip(changes) {
            let line = encode(&LogLine {
                number,
                time: number,
                change,
            })
            .unwrap();
            open.log.write_all(&line).unwrap();
        }
        let log = folder.read().unwrap();
        assert_eq!((&log.header, log.is_complete), (&header(), true));
        assert_eq!(log.changes, [free("/p/b")]);
        let text = fs::read(folder.log()).unwrap();
        let cut = WitnessLog::parse(&text[..text.len() - 3]).unwrap();
        assert!(!cut.is_complete);
        assert_eq!(cut.changes, [free("/p/b")]);
        let broken = [&text[..], b"{\n"].concat();
        assert!(WitnessLog::parse(&broken).is_err());
    }
}
