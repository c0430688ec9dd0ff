//! Browsers that are killed, grow, hang and are left: the call says so, the session goes on, nothing stays behind.

use std::{
    fs,
    io::Read,
    net::TcpListener,
    path::{Path, PathBuf},
    thread,
};

use haft_testkit::{PageServer, until_blocking};
use serde_json::json;

use super::{Session, descendants, is_browser};

fn browsers(session: &Session) -> Vec<u32> {
    let all = descendants(session.child.id());
    all.into_iter().filter(|pid| is_browser(*pid)).collect()
}

/// The folder of a browser, which holds its profile.
fn profile(pid: u32) -> Option<PathBuf> {
    let line = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut arguments = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let folder =
        arguments.find_map(|one| one.strip_prefix("--user-data-dir=").map(str::to_owned))?;
    Path::new(&folder).parent().map(Path::to_path_buf)
}

fn kill(pids: &[u32]) {
    for pid in pids {
        let _ = haft_testkit::command("kill")
            .args(["-KILL", &pid.to_string()])
            .status();
    }
}

#[test]
fn a_browser_that_is_killed_is_replaced_by_an_empty_one() {
    let Some(mut session) = Session::start(&json!({}), &[("a.html", "<h1>One</h1>")]) else {
        return;
    };
    let open = json!({"action": "navigate", "url": "http://haft.localhost/a.html"});
    session.good(&open);
    let running = browsers(&session);
    kill(&running);
    until_blocking("it is gone", || running.iter().all(|pid| !is_browser(*pid)));
    // Its end may be seen by this call or have been seen before it.
    let (failed, first) = session.call(&json!({"action": "snapshot"}));
    match failed {
        true => assert!(first.contains("the browser ended"), "{first}"),
        false => assert!(first.contains("a new one with an empty profile"), "{first}"),
    }
    let shown = session.good(&open);
    assert!(shown.contains("- heading \"One\""), "{shown}");
    assert!(
        !failed || shown.contains("The browser has ended; this is a new one"),
        "{shown}"
    );
    drop(session.end());
}

#[test]
fn a_browser_that_grows_is_closed_and_it_is_said() {
    let page = "<script>const held = [];
        setInterval(() => { if (held.length < 60) held.push(new Uint8Array(1e7).fill(7)); }, 20)</script><h1>Grows</h1>";
    let settings = json!({"browser": {"memoryMb": 256}});
    let Some(mut session) = Session::start(&settings, &[("a.html", page)]) else {
        return;
    };
    session.good(&json!({"action": "navigate", "url": "a.html"}));
    let running = browsers(&session);
    until_blocking("it is closed", || {
        running.iter().all(|pid| !is_browser(*pid))
    });
    let said = session.good(&json!({"action": "tabs"}));
    assert!(
        said.contains("The browser was closed because it used ")
            && said.contains("(browser.memoryMb is 256)"),
        "{said}"
    );
    drop(session.end());
}

#[test]
fn a_page_that_never_comes_ends_at_its_time() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = format!("http://{}/", silent.local_addr().unwrap());
    thread::spawn(move || {
        // It listens and says nothing, until the other side goes.
        while let Ok((mut client, _)) = silent.accept() {
            thread::spawn(move || client.read_to_end(&mut Vec::new()));
        }
    });
    let settings = json!({"permissions": {"allow": ["WebFetch(domain:127.0.0.1)"]}});
    let Some(mut session) = Session::start(&settings, &[("a.html", "<h1>Next</h1>")]) else {
        return;
    };
    let late = session.bad(&json!({"action": "navigate", "url": at, "timeout": 2000}));
    assert!(late.contains("did not end within 2 s"), "{late}");
    let shown = session.good(&json!({"action": "navigate", "url": "a.html"}));
    assert!(shown.contains("- heading \"Next\""), "{shown}");
    drop(session.end());
}

#[test]
fn a_download_is_kept_in_the_folder_of_the_session() {
    let server = PageServer::start([
        ("/", "<a href=/get>Get</a>"),
        (
            "/get",
            "HTTP 200 OK\nContent-Type: application/octet-stream\nContent-Disposition: attachment; filename=\"../.b ash.sh\"\n\nrm -rf",
        ),
    ]);
    let settings = json!({"permissions": {"allow": ["WebFetch(domain:127.0.0.1)"]}});
    let Some(mut session) = Session::start(&settings, &[]) else {
        return;
    };
    let shown = session.good(&json!({"action": "navigate", "url": server.url}));
    let mut said =
        session.good(&json!({"action": "click", "ref": super::reference(&shown, "Get")}));
    until_blocking("the download", || {
        said.push_str(&session.call(&json!({"action": "tabs"})).1);
        said.contains("was downloaded (6 bytes) to ")
    });
    let path = said.split("was downloaded (6 bytes) to ").nth(1).unwrap();
    let path = Path::new(
        path.split([';', '\n'])
            .next()
            .unwrap()
            .trim_end_matches('.'),
    );
    assert_eq!(fs::read_to_string(path).unwrap(), "rm -rf", "{said}");
    let name = path.file_name().unwrap().to_str().unwrap();
    assert!(
        name.starts_with("download-") && name.ends_with("ash.sh"),
        "{name}"
    );
    assert!(path.parent().unwrap().ends_with("tool-results"), "{said}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    drop(session.end());
}

/// Neither processes nor profiles, however the session ends.
#[test]
fn nothing_is_left_behind() {
    for killed in [false, true] {
        let Some(mut session) = Session::start(&json!({}), &[("a.html", "<h1>x</h1>")]) else {
            return;
        };
        session.good(&json!({"action": "navigate", "url": "a.html"}));
        let running = browsers(&session);
        assert!(running.len() > 1, "{running:?}");
        let profiles: Vec<PathBuf> = running.iter().filter_map(|pid| profile(*pid)).collect();
        assert!(
            !profiles.is_empty() && profiles.iter().all(|path| path.exists()),
            "{profiles:?}"
        );
        let dir = match killed {
            true => {
                session.child.kill().unwrap();
                session.child.wait().unwrap();
                session.into_folder()
            }
            false => session.end(),
        };
        until_blocking("the browser ends", || {
            running.iter().all(|pid| !is_browser(*pid))
        });
        until_blocking("its files are removed", || {
            profiles.iter().all(|path| !path.exists())
        });
        drop(dir);
    }
}
