//! Background work: everything that reads from disk, starts a process or waits.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc::{Sender, channel},
    thread,
    time::{SystemTime, UNIX_EPOCH},
};

use haft::Content;
use haft_host::{image_content, image_pixels};
use haft_terminal::{
    HistoryItem, TextLine,
    image::{ImageProtocol, RgbaPixels, TerminalImage},
};

use super::{
    app::{AppInput, JobResult},
    history_file::{DraftFile, HistoryFile, PromptHistoryEntry, take_recovered_draft},
    ui::UiEvent,
};

/// The maximum size of an image file in bytes.
const MAX_IMAGE: u64 = 50 << 20;

/// Data to store on disk, in order.
pub(crate) enum PersistTask {
    History { text: String, session: String },
    Draft { text: String, session: String },
}

/// The thread that stores the prompt history and the draft. Dropping it removes the draft, because
/// haft exits normally then.
pub(crate) struct PersistThread {
    sender: Option<Sender<PersistTask>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl PersistThread {
    pub(crate) fn start(user_folder: PathBuf, project: PathBuf, ui: Sender<UiEvent>) -> Self {
        let (sender, receiver) = channel();
        let work = move || {
            let file = HistoryFile::in_folder(&user_folder);
            let found = |found| drop(ui.send(UiEvent::App(AppInput::Found(found))));
            found(JobResult::History(file.load()));
            if let Some(draft) = take_recovered_draft(&user_folder, &project) {
                found(JobResult::RecoveredDraft(draft.text));
            }
            let mut drafts = DraftFile::new(&user_folder, &project);
            let mut has_failed = false;
            while let Ok(keep) = receiver.recv() {
                let kept = match keep {
                    PersistTask::Draft { text, session } => drafts.store_draft(&text, &session),
                    PersistTask::History { text, session } => {
                        let since = SystemTime::now().duration_since(UNIX_EPOCH);
                        let time_ms = since.unwrap_or_default().as_millis();
                        let entry = PromptHistoryEntry {
                            text,
                            project: project.clone(),
                            session,
                            time_ms: u64::try_from(time_ms).unwrap_or(u64::MAX),
                        };
                        file.append(&entry).map(drop)
                    }
                };
                if let Err(error) = kept
                    && !std::mem::replace(&mut has_failed, true)
                {
                    found(JobResult::Warning(format!(
                        "typed messages are not saved: {error}"
                    )));
                }
            }
        };
        Self {
            sender: Some(sender),
            thread: thread::Builder::new()
                .name("history".into())
                .spawn(work)
                .ok(),
        }
    }

    pub(crate) fn enqueue(&self, keep: PersistTask) {
        if let Some(sender) = &self.sender {
            let _ = sender.send(keep);
        }
    }
}

impl Drop for PersistThread {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Loads an image for the draft. Returns its label and its content.
pub(crate) fn picture(path: &Path) -> Result<(String, Content), String> {
    let size = fs::metadata(path).map_err(|error| error.to_string())?.len();
    if size > MAX_IMAGE {
        return Err("it is larger than 50 MB".to_owned());
    }
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let name = path.file_name().unwrap_or(path.as_os_str());
    described(&name.to_string_lossy(), &bytes)
}

/// Returns the image in the clipboard.
pub(crate) fn clipboard_picture() -> Result<(String, Content), String> {
    const PROGRAMS: [(&str, &[&str]); 2] = [
        ("wl-paste", &["--type", "image/png"]),
        (
            "xclip",
            &["-selection", "clipboard", "-t", "image/png", "-o"],
        ),
    ];
    for (program, arguments) in PROGRAMS {
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = child else {
            continue;
        };
        let mut bytes = Vec::new();
        if let Some(output) = child.stdout.take() {
            let _ = output.take(MAX_IMAGE).read_to_end(&mut bytes);
        }
        let _ = child.kill();
        let _ = child.wait();
        if !bytes.is_empty() {
            return described("clipboard.png", &bytes);
        }
    }
    Err("the clipboard has no image (tried wl-paste and xclip)".to_owned())
}

fn described(name: &str, bytes: &[u8]) -> Result<(String, Content), String> {
    let content = image_content(bytes)?;
    let label = match picture_size(bytes) {
        Some((width, height)) => format!("{name} {width}x{height}"),
        None => name.to_owned(),
    };
    Ok((label, content))
}

/// Returns the width and height from the header of an image file.
fn picture_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let big = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        return Some((big(16)?, big(20)?));
    }
    if bytes.starts_with(b"GIF8") {
        let little = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        return Some((little(6)?.into(), little(8)?.into()));
    }
    if bytes.starts_with(b"\xff\xd8") {
        let half = |at: usize| Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
        let mut at = 2;
        while let Some([0xff, marker]) = bytes.get(at..at + 2) {
            let is_frame = matches!(marker, 0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf);
            if is_frame {
                return Some((half(at + 7)?.into(), half(at + 5)?.into()));
            }
            at += 2 + usize::from(half(at + 2)?);
        }
    }
    None
}

/// The maximum number of pixels from which an image is drawn: as many as its cells can show.
const MAX_PIXELS: (u32, u32) = (400, 240);

/// Returns the image as the terminal shows it, or `None` if it cannot be decoded.
pub(crate) fn drawn(
    content: &Content,
    name: &str,
    protocol: ImageProtocol,
    number: u32,
) -> Option<HistoryItem> {
    let pixels = image_pixels(content, MAX_PIXELS)?;
    if protocol == ImageProtocol::Name {
        let (width, height) = pixels.original;
        let text = format!("  [{name} {width}x{height}]");
        return Some(HistoryItem::Verbatim(TextLine::plain(&text)));
    }
    let side = |length: u32| usize::try_from(length).ok();
    let (width, height) = (side(pixels.size.0)?, side(pixels.size.1)?);
    let pixels = RgbaPixels::new(width, height, pixels.rgba)?;
    // Terminals store images by number, and another program may have shown images before, so the
    // number includes the process id.
    let id = (std::process::id() << 8).wrapping_add(number);
    let image = TerminalImage::new(protocol, &pixels, id, name);
    Some(HistoryItem::Image(image))
}

/// Returns the path if a pasted text is the path of an image.
pub(crate) fn picture_path(text: &str, cwd: &Path) -> Option<PathBuf> {
    let text = text.trim();
    let text = text.strip_prefix("file://").unwrap_or(text);
    let text = text
        .strip_prefix(['\'', '"'])
        .and_then(|text| text.strip_suffix(['\'', '"']))
        .unwrap_or(text);
    if text.is_empty() || text.contains('\n') || text.len() > 4096 {
        return None;
    }
    let path = PathBuf::from(text.replace("\\ ", " "));
    let extension = path.extension()?.to_str()?.to_lowercase();
    let is_picture = matches!(&*extension, "png" | "jpg" | "jpeg" | "gif" | "webp");
    is_picture.then(|| cwd.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pasted_path_of_a_picture_is_known() {
        let cwd = Path::new("/p");
        for (text, path) in [
            ("a.png", Some("/p/a.png")),
            (" '/x/my a.JPG' ", Some("/x/my a.JPG")),
            ("/x/my\\ a.gif", Some("/x/my a.gif")),
            ("file:///x/a.webp", Some("/x/a.webp")),
            ("a.txt", None),
            ("see a.png\nand b.png", None),
        ] {
            assert_eq!(picture_path(text, cwd), path.map(PathBuf::from), "{text}");
        }
    }

    #[test]
    fn the_beginning_of_a_picture_says_its_size() {
        let mut png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        png.extend([0, 0, 3, 44, 0, 0, 1, 184]);
        assert_eq!(picture_size(&png), Some((812, 440)));
        assert_eq!(picture_size(b"GIF89a\x10\0\x20\0"), Some((16, 32)));
        assert_eq!(picture_size(b"\xff\xd8\xff"), None);
    }
}
