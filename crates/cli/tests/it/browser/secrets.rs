//! Secrets are typed into pages of their hosts, and shown to no one.

use haft_testkit::PageServer;
use serde_json::json;

use super::{Session, reference};

#[test]
fn a_secret_reaches_its_host_and_no_answer() {
    let page = "<form action=/sent><label>User <input name=u></label><label>Pass <input type=password name=p></label>
        <button>Log in</button></form>";
    let server = PageServer::start([
        ("/", page),
        (
            "/sent",
            "<h1>In</h1><script>document.write('<p>You are ' + decodeURIComponent(location.search) + '</p>')</script>",
        ),
    ]);
    let settings = json!({
        "permissions": {"allow": ["WebFetch(domain:127.0.0.1)"]},
        "browser": {"secrets": {
            "PASS": {"command": "printf 'hunter2-is-long'", "hosts": ["127.0.0.1"]},
            "OTHER": {"command": "echo other-secret", "hosts": ["app.example"]},
        }},
    });
    let Some(mut session) = Session::start(&settings, &[("a.html", page)]) else {
        return;
    };
    let shown = session.good(&json!({"action": "navigate", "url": server.url}));
    let (user, pass) = (reference(&shown, "\"User\""), reference(&shown, "\"Pass\""));
    let mut said = session.good(&json!({"action": "fill", "fields": [
        {"ref": user, "value": "{{PASS}}"}, {"ref": pass, "value": "x{{PASS}}"},
    ]}));
    let foreign = session.bad(&json!({"action": "type", "ref": user, "text": "{{OTHER}}"}));
    assert!(
        foreign.contains("{{OTHER}} is typed only into pages of app.example"),
        "{foreign}"
    );
    said += &session.good(&json!({"action": "snapshot"}));
    said += &session.good(&json!({"action": "evaluate", "script": "document.forms[0].u.value + btoa(document.forms[0].u.value)"}));
    said += &session.good(&json!({"action": "click", "ref": reference(&shown, "Log in")}));
    said += &session.good(&json!({"action": "network"}));
    said += &session.good(&json!({"action": "tabs"}));
    assert!(
        said.contains("{{PASS}}") && !said.contains("hunter2"),
        "{said}"
    );
    let asked = server.requested_paths();
    assert!(
        asked.contains(&"/sent?u=hunter2-is-long&p=xhunter2-is-long".to_owned()),
        "{asked:?}"
    );
    let shown = session.good(&json!({"action": "navigate", "url": "a.html"}));
    let elsewhere = session
        .bad(&json!({"action": "type", "ref": reference(&shown, "\"User\""), "text": "{{PASS}}"}));
    assert!(
        elsewhere.contains("typed only into pages of 127.0.0.1"),
        "{elsewhere}"
    );
    drop(session.end());
}
