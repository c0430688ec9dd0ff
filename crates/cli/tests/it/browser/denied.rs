//! Hosts that a rule denies are reached in no way that a page has.
//!
//! One server answers to two names: pages come from `127.0.0.1`, which is allowed, and try all they can to reach
//! `localhost`, where the same server would write down each path. The same pages where nothing is denied show that
//! each way is one.

use haft_testkit::PageServer;
use serde_json::{Value, json};

use super::{Session, reference};

const WAYS: &str = "<h1>Tries</h1><p id=out></p><script>
    const at = 'http://localhost:PORT/leak-';
    const once = (make) => new Promise(done => { make(done); setTimeout(done, 8000); });
    const link = rel => once(done => {
        const l = document.createElement('link');
        l.rel = rel; l.as = 'fetch'; l.onload = l.onerror = done; l.href = at + rel; document.head.append(l);
    });
    const tries = [
        fetch(at + 'fetch', {mode: 'no-cors'}),
        once(done => { const i = new Image(); i.onload = i.onerror = done; i.src = at + 'image'; }),
        once(done => { const f = document.createElement('iframe'); f.onload = done; f.src = at + 'frame'; document.body.append(f); }),
        once(done => { const w = new WebSocket('ws://localhost:PORT/leak-socket'); w.onopen = w.onerror = w.onclose = done; }),
        once(done => { const e = new EventSource(at + 'events'); e.onopen = e.onerror = () => { e.close(); done(); }; }),
        once(done => {
            const code = `fetch('${at}worker', {mode: 'no-cors'}).catch(() => 0).then(() => postMessage(1))`;
            const w = new Worker(URL.createObjectURL(new Blob([code]))); w.onmessage = done;
        }),
        navigator.serviceWorker.register('/sw.js').then(() => navigator.serviceWorker.ready),
        link('prefetch'), link('preload'), link('stylesheet'),
        once(done => { navigator.sendBeacon(at + 'beacon', 'x'); setTimeout(done, 1000); }),
        fetch('/sent-on', {mode: 'no-cors'}),
    ];
    Promise.allSettled(tries).then(() => out.textContent = 'all tried');
</script>";
const SERVICE_WORKER: &str = "HTTP 200 OK\nContent-Type: text/javascript\n\n
    self.addEventListener('install', e => e.waitUntil(fetch('http://localhost:PORT/leak-service', {mode: 'no-cors'}).catch(() => 0)))";
const PAGES: &str = "<h1>Goes</h1><a href=http://localhost:PORT/leak-link>Link</a>
    <a href=http://localhost:PORT/leak-tab target=_blank>Tab</a>
    <form method=post action=http://localhost:PORT/leak-form><button>Send</button></form>
    <button onclick=\"location = 'http://localhost:PORT/leak-script'\">Script</button>
    <a href=/redirect>Redirect</a>";

/// What of `localhost` was asked for when pages of `127.0.0.1` have tried everything.
fn reached(settings: &Value) -> Option<Vec<String>> {
    let target = PageServer::start([("/", "<h1>Target</h1>")]);
    let port = target.port().to_string();
    let redirect = "HTTP 302 Found\nLocation: http://localhost:PORT/leak-redirect\n\n";
    let sent_on = "HTTP 307 Found\nLocation: http://localhost:PORT/leak-sent-on\n\n";
    let pages = [
        ("/", WAYS),
        ("/sw.js", SERVICE_WORKER),
        ("/pages", PAGES),
        ("/redirect", redirect),
        ("/sent-on", sent_on),
    ];
    let server = PageServer::start(pages.map(|(path, body)| (path, body.replace("PORT", &port))));
    let mut session = Session::start(settings, &[])?;
    let at = |path: &str| format!("{}{path}", server.url);
    session.good(&json!({"action": "navigate", "url": at("/"), "timeout": 60000}));
    session.good(&json!({"action": "wait_for", "text": "all tried", "timeout": 60000}));
    for words in ["Link", "Tab", "Send", "Script", "Redirect"] {
        let shown = session.good(&json!({"action": "navigate", "url": at("/pages")}));
        session
            .call(&json!({"action": "click", "ref": reference(&shown, &format!("\"{words}\""))}));
    }
    session.call(&json!({"action": "navigate", "url": at("/redirect")}));
    session
        .call(&json!({"action": "navigate", "url": format!("http://localhost:{port}/leak-typed")}));
    drop(session.end());
    let mut asked = target.requested_paths();
    asked.retain(|path| path.starts_with("/leak-"));
    asked.sort();
    asked.dedup();
    Some(asked)
}

#[test]
fn no_way_of_a_page_leads_to_a_denied_host() {
    for rule in ["Browser(domain:localhost)", "WebFetch(domain:localhost)"] {
        let settings = json!({"permissions": {
            "allow": ["WebFetch(domain:127.0.0.1)", "Browser(domain:127.0.0.1)"],
            "deny": [rule],
        }});
        let Some(asked) = reached(&settings) else {
            return;
        };
        assert!(asked.is_empty(), "{rule}: {asked:?}");
    }
}

#[test]
fn each_of_these_ways_is_one_where_nothing_is_denied() {
    let settings = json!({"permissions": {
        "allow": ["WebFetch(domain:127.0.0.1)", "Browser(domain:localhost)"],
    }});
    let Some(asked) = reached(&settings) else {
        return;
    };
    for way in [
        "beacon",
        "events",
        "fetch",
        "form",
        "frame",
        "image",
        "link",
        "prefetch",
        "preload",
        "redirect",
        "script",
        "sent-on",
        "service",
        "socket",
        "stylesheet",
        "tab",
        "typed",
        "worker",
    ] {
        assert!(asked.contains(&format!("/leak-{way}")), "{way}: {asked:?}");
    }
}

/// A mode that is about files opens no host; plan mode lets pages be looked at.
#[test]
fn modes_open_no_host() {
    let page = [("index.html", "<h1>Plan</h1><button>Go</button>")];
    let mode = |mode: &str| json!({"permissions": {"defaultMode": mode}});
    let Some(mut session) = Session::start(&mode("acceptEdits"), &page) else {
        return;
    };
    let refused = session.bad(&json!({"action": "navigate", "url": "http://new.example/"}));
    assert!(refused.contains("new.example"), "{refused}");
    let shown = session.good(&json!({"action": "navigate", "url": "index.html"}));
    session.good(&json!({"action": "click", "ref": reference(&shown, "Go")}));
    drop(session.end());
    let Some(mut session) = Session::start(&mode("plan"), &page) else {
        return;
    };
    let file = format!(
        "file://{}/index.html",
        session.work().canonicalize().unwrap().display()
    );
    // Opening contacts a host, if only this one.
    let (_, shown) = session.call(&json!({"action": "navigate", "url": file}));
    session.good(&json!({"action": "snapshot"}));
    if shown.contains("[ref=") {
        let acted = session.bad(&json!({"action": "click", "ref": reference(&shown, "Go")}));
        assert!(acted.contains("plan"), "{acted}");
    }
    drop(session.end());
}
