//! Serves files of the project at `http://haft.localhost/`, subject to the rules for reading.

use std::{
    fs,
    io::Read,
    path::{Component, Path, PathBuf},
};

use haft_browser::{SERVED_HOST, ServedFile};
use haft_contract::PermissionSnapshot;
use url::Url;

/// The maximum size of a served file, in bytes.
const MAX_SIZE: u64 = 50 << 20;

/// Returns the file at the path of a URL, below `root`. The answer is 404 for every file that may
/// not be read, so that a page cannot find out whether it exists.
pub(super) fn serve(root: &Path, url_path: &str, permissions: &PermissionSnapshot) -> ServedFile {
    let found = find(root, url_path, permissions).and_then(|path| {
        let mut bytes = Vec::new();
        let mut file = fs::File::open(&path).ok()?.take(MAX_SIZE + 1);
        file.read_to_end(&mut bytes).ok()?;
        (bytes.len() as u64 <= MAX_SIZE).then_some((path, bytes))
    });
    match found {
        Some((path, body)) => ServedFile {
            status: 200,
            content_type: content_type(&path).to_owned(),
            body,
        },
        None => ServedFile {
            status: 404,
            content_type: "text/plain; charset=utf-8".to_owned(),
            body: b"This file does not exist, or it may not be read.".to_vec(),
        },
    }
}

/// Returns the URL of a served file of the project. `given` is its path or its `file:` URL. Returns
/// `None` for everything else.
pub(super) fn url_of(root: &Path, given: &str) -> Option<String> {
    let path = match given.strip_prefix("file:") {
        Some(_) => Url::parse(given).ok()?.to_file_path().ok()?,
        None if given.contains("://") || given == "about:blank" => return None,
        None => root.join(given),
    };
    if !path.exists() {
        return None;
    }
    let relative = path.strip_prefix(root).ok()?;
    let mut url = Url::parse(&format!("http://{SERVED_HOST}/")).ok()?;
    {
        let mut segments = url.path_segments_mut().ok()?;
        segments.pop_if_empty();
        for part in relative.components() {
            match part {
                Component::Normal(name) => drop(segments.push(name.to_str()?)),
                Component::CurDir => {}
                _ => return None,
            }
        }
    }
    Some(url.into())
}

/// Returns the real path of a file, if the rules permit reading it.
fn find(root: &Path, url_path: &str, permissions: &PermissionSnapshot) -> Option<PathBuf> {
    let decoded = decoded(url_path)?;
    let relative = Path::new(decoded.trim_start_matches('/'));
    let plain = relative
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    if !plain || decoded.contains(['\\', '\0']) {
        return None;
    }
    let given = root.join(relative);
    let mut real = fs::canonicalize(&given).ok()?;
    if real.is_dir() {
        real = fs::canonicalize(real.join("index.html")).ok()?;
    }
    if !fs::metadata(&real).ok()?.is_file() {
        return None;
    }
    let inside = permissions.directories.iter().any(|directory| {
        fs::canonicalize(directory).is_ok_and(|directory| real.starts_with(directory))
    }) || fs::canonicalize(root).is_ok_and(|root| real.starts_with(root));
    let hidden = [&given, &real]
        .into_iter()
        .any(|path| permissions.hidden.hides(path) || permissions.locked.hides(path));
    // Git's own files may contain URLs with access tokens.
    let kept = real.components().any(|part| part.as_os_str() == ".git");
    let named = permissions
        .confinement
        .hidden
        .iter()
        .chain(permissions.key_stores.iter())
        .any(|store| real.starts_with(store));
    (inside && !hidden && !kept && !named).then_some(real)
}

fn decoded(path: &str) -> Option<String> {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            let text = std::str::from_utf8(&digits).ok()?;
            bytes.push(u8::from_str_radix(text, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

fn content_type(path: &Path) -> &'static str {
    let extension = path
        .extension()
        .and_then(|extension| extension.to_str())
        .unwrap_or_default();
    match extension.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "js" | "mjs" | "cjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "map" => "application/json; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "avif" => "image/avif",
        "ico" => "image/x-icon",
        "woff" => "font/woff",
        "woff2" => "font/woff2",
        "ttf" => "font/ttf",
        "wasm" => "application/wasm",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "mp3" => "audio/mpeg",
        "pdf" => "application/pdf",
        "xml" => "text/xml; charset=utf-8",
        "txt" | "md" | "csv" | "log" | "ts" | "tsx" | "jsx" | "toml" | "yaml" | "yml" => {
            "text/plain; charset=utf-8"
        }
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use haft_contract::CallContext;

    use super::*;

    #[test]
    fn files_of_the_project_have_an_address() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::write(root.join("sub/a b.html"), "page").unwrap();
        fs::write(folder.path().join("secret"), "key").unwrap();
        let at = |given: &str| url_of(&root, given);
        let served = Some("http://haft.localhost/sub/a%20b.html".to_owned());
        assert_eq!(at("sub/a b.html"), served);
        assert_eq!(at("./sub/a b.html"), served);
        assert_eq!(at(&root.join("sub/a b.html").display().to_string()), served);
        let file = format!("file://{}/sub/a%20b.html", root.display());
        assert_eq!(at(&file), served);
        for none in [
            "http://a.example/sub/",
            "about:blank",
            "missing.html",
            "../secret",
            "sub/../../secret",
            "file:///etc/passwd",
            "file://host/etc/passwd",
            "/etc/passwd",
            "localhost:3000",
        ] {
            assert_eq!(at(none), None, "{none}");
        }
    }

    #[test]
    fn only_what_may_be_read_is_served() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("project");
        fs::create_dir_all(root.join("sub")).unwrap();
        fs::create_dir_all(root.join(".git")).unwrap();
        fs::write(root.join("sub/index.html"), "page").unwrap();
        fs::write(root.join("a b.js"), "1").unwrap();
        fs::write(root.join(".git/config"), "key").unwrap();
        fs::write(folder.path().join("secret"), "key").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        let (cx, _updates) = CallContext::for_test(&root);
        let of = |path: &str| {
            let served = serve(&root, path, &cx.permissions);
            (served.status, served.content_type)
        };
        assert_eq!(of("/sub/"), (200, "text/html; charset=utf-8".to_owned()));
        assert_eq!(
            of("/a%20b.js?v=1"),
            (200, "text/javascript; charset=utf-8".to_owned())
        );
        for no in [
            "/",
            "/link",
            "/../secret",
            "/%2e%2e/secret",
            "/..%2fsecret",
            "/sub/../../secret",
            "/.git/config",
            "/%00",
            "/%zz",
            "//etc/passwd",
            "/a%5cb",
            "/sub%2f..%2f..%2fsecret",
        ] {
            assert_eq!(of(no).0, 404, "{no}");
        }
    }
}
