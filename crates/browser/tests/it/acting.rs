//! Fields, keys, drags, files, downloads, waiting.

use std::time::Duration;

use haft_browser::{DownloadState, Emulation, PageAction};
use serde_json::json;

use crate::{LIMIT, Opened, click, ref_of, snapshot, value};

#[tokio::test]
async fn typing_replaces_and_tells_what_the_field_made_of_it() {
    let page = "<label>Code <input id=c value=old maxlength=3></label><label>Note <textarea id=t>x</textarea></label>
        <div contenteditable id=e aria-label=Rich role=textbox>was</div><label>Day <input type=date id=d></label>
        <form onsubmit=\"event.preventDefault();out.textContent='sent '+p.value.length\"><label>Secret <input type=password id=p></label></form><p id=out></p>
        <input disabled aria-label=Off>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    let shown = snapshot(&tab).await;
    let typed = |into: u32, text: &str, submit: bool| PageAction::Type {
        into,
        text: text.to_owned(),
        submit,
    };
    let cut = tab
        .act(&typed(ref_of(&shown, "Code"), "abcdef", false))
        .await
        .unwrap();
    assert!(
        cut.remarks[0].ends_with("now holds \"abc\""),
        "{:?}",
        cut.remarks
    );
    let whole = tab
        .act(&typed(ref_of(&shown, "Note"), "two\nlines", false))
        .await
        .unwrap();
    assert!(whole.remarks.is_empty(), "{:?}", whole.remarks);
    let rich = tab
        .act(&typed(ref_of(&shown, "Rich"), "is", false))
        .await
        .unwrap();
    assert!(rich.remarks.is_empty(), "{:?}", rich.remarks);
    tab.act(&typed(ref_of(&shown, "Day"), "2026-11-16", false))
        .await
        .unwrap();
    let sent = tab
        .act(&typed(ref_of(&shown, "Secret"), "hunter2", true))
        .await
        .unwrap();
    assert!(sent.remarks.is_empty(), "{:?}", sent.remarks);
    let held = value(
        &tab,
        "[c.value,t.value,e.innerText,d.value,out.textContent]",
    )
    .await;
    assert_eq!(
        held,
        json!(["abc", "two\nlines", "is", "2026-11-16", "sent 7"])
    );
    let shown = snapshot(&tab).await;
    assert!(!shown.contains("hunter2"), "{shown}");
    let off = tab
        .act(&typed(ref_of(&shown, "Off"), "x", false))
        .await
        .unwrap_err()
        .to_string();
    assert!(off.ends_with("is disabled."), "{off}");
}

#[tokio::test]
async fn keys_lists_and_drags_are_real_events() {
    let page = "<input id=i value=abc aria-label=In><select id=s aria-label=Pick><option>One<option>Two</select>
        <div id=a draggable=true tabindex=0 role=button aria-label=Card>card</div>
        <div id=b tabindex=0 role=button aria-label=Bin style='width:200px;height:200px;background:#ddd'>bin</div><pre id=log></pre>
        <script>i.onkeydown=e=>log.textContent+=e.key+(e.isTrusted?'!':'?');
        a.ondragstart=e=>e.dataTransfer.setData('text/plain','card');
        b.ondragover=e=>e.preventDefault(); b.ondrop=e=>log.textContent+=' dropped '+e.dataTransfer.getData('text/plain')</script>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    click(&tab, "textbox").await.unwrap();
    tab.act(&PageAction::Press("Control+A".to_owned()))
        .await
        .unwrap();
    tab.act(&PageAction::Press("Backspace".to_owned()))
        .await
        .unwrap();
    tab.act(&PageAction::Press("x".to_owned())).await.unwrap();
    let shown = snapshot(&tab).await;
    let pick = ref_of(&shown, "Pick");
    let wrong = PageAction::Select {
        of: pick,
        values: vec!["Three".to_owned()],
    };
    let error = tab.act(&wrong).await.unwrap_err().to_string();
    assert!(
        error.contains("no option \"Three\". It has: \"One\", \"Two\"."),
        "{error}"
    );
    tab.act(&PageAction::Select {
        of: pick,
        values: vec!["Two".to_owned()],
    })
    .await
    .unwrap();
    tab.act(&PageAction::Drag {
        from: ref_of(&shown, "Card"),
        to: ref_of(&shown, "Bin"),
    })
    .await
    .unwrap();
    let held = tab
        .evaluate("[i.value, s.value, log.textContent]", None, LIMIT)
        .await
        .unwrap();
    assert_eq!(held, json!(["x", "Two", "a!Backspace!x! dropped card"]));
}

#[tokio::test]
async fn files_go_up_and_come_down() {
    let page = "<label>File <input type=file id=f onchange=\"f.files[0].text().then(t=>out.textContent=f.files[0].name+' '+t)\"></label>
        <p id=out></p><a href=/get>Get</a>";
    let file = "HTTP 200 OK\nContent-Type: application/octet-stream\nContent-Disposition: attachment; filename=\"../../a b.bin\"\n\nbytes";
    let Some(opened) = Opened::with(&[("/", page), ("/get", file)]).await else {
        return;
    };
    let tab = opened.go("/").await;
    let path = opened.folder.path().join("up.txt");
    std::fs::write(&path, "content").unwrap();
    let shown = snapshot(&tab).await;
    let upload = |to| PageAction::Upload {
        to,
        files: vec![path.display().to_string()],
    };
    tab.act(&upload(ref_of(&shown, "File"))).await.unwrap();
    tab.wait_for(Some("up.txt content"), None, LIMIT)
        .await
        .unwrap();
    let wrong = tab
        .act(&upload(ref_of(&shown, "Get")))
        .await
        .unwrap_err()
        .to_string();
    assert!(wrong.contains("takes no files"), "{wrong}");
    // A link that turns out to be a file leads nowhere, and that is no error.
    click(&tab, "Get").await.unwrap();
    let mut done = Vec::new();
    haft_testkit::until("the download", || {
        done.extend(opened.browser.take_downloads());
        !done.is_empty()
    })
    .await;
    assert_eq!((done[0].state, done[0].bytes), (DownloadState::Complete, 5));
    assert!(!done[0].name.contains('/'), "{}", done[0].name);
    let kept = opened.folder.path().join(&done[0].guid);
    assert_eq!(std::fs::read(kept).unwrap(), b"bytes");
}

#[tokio::test]
async fn a_click_that_downloads_and_leads_on_ends_where_it_leads() {
    let page = "<a id=file href=/get download></a><button onclick=\"file.click(); setTimeout(() => location = '/2', 50)\">Both</button>";
    let file = "HTTP 200 OK\nContent-Type: application/octet-stream\n\nbytes";
    let pages = [("/", page), ("/get", file), ("/2", "<h1>Two</h1>")];
    let Some(opened) = Opened::with(&pages).await else {
        return;
    };
    let tab = opened.go("/").await;
    click(&tab, "Both").await.unwrap();
    let shown = snapshot(&tab).await;
    assert!(shown.contains("heading \"Two\""), "{shown}");
}

#[tokio::test]
async fn waiting_ends_with_the_text_or_says_what_is_there() {
    let page =
        "<p id=p>Loading items</p><script>setTimeout(()=>p.textContent='Ready now',300)</script>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    tab.wait_for(Some("ready NOW"), Some("Loading"), LIMIT)
        .await
        .unwrap();
    let short = Duration::from_millis(300);
    let error = tab
        .wait_for(Some("Readiness"), None, short)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("No text \"Readiness\" within 0.3 s. Near: paragraph \"Ready now\""),
        "{error}"
    );
    let error = tab
        .wait_for(None, Some("Ready"), short)
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("still there"), "{error}");
}

#[tokio::test]
async fn a_page_that_comes_back_has_its_frames_and_can_be_acted_on() {
    let page = "<button onclick=\"out.textContent='Pressed'\">Press</button><p id=out></p><iframe src=/in></iframe>";
    let pages = [("/", page), ("/in", "<p>Inner words</p>"), ("/2", "two")];
    let Some(opened) = Opened::with(&pages).await else {
        return;
    };
    let tab = opened.go("/").await;
    assert!(snapshot(&tab).await.contains("Inner words"));
    tab.navigate(&opened.url("/2"), LIMIT).await.unwrap();
    tab.go_history(-1, LIMIT).await.unwrap();
    click(&tab, "Press").await.unwrap();
    let shown = snapshot(&tab).await;
    assert!(
        shown.contains("Pressed") && shown.contains("Inner words"),
        "{shown}"
    );
}

#[tokio::test]
async fn history_scripts_and_other_screens() {
    let Some(opened) = Opened::with(&[("/", "<h1>One</h1>"), ("/2", "<h1>Two</h1>")]).await else {
        return;
    };
    let tab = opened.go("/").await;
    tab.navigate(&opened.url("/2"), LIMIT).await.unwrap();
    // Pages that the browser has kept are there at once.
    for (by, path) in [(-1, "/"), (1, "/2")] {
        let arrived = tab.go_history(by, LIMIT).await.unwrap();
        assert_eq!((arrived.url, arrived.busy), (opened.url(path), false));
    }
    assert!(
        tab.go_history(1, LIMIT)
            .await
            .unwrap_err()
            .to_string()
            .contains("no page after")
    );
    for (script, value) in [
        ("1 + 1", json!(2)),
        ("({a: [1, 'x']})", json!({"a": [1, "x"]})),
        (
            "return document.querySelector('h1').textContent",
            json!("Two"),
        ),
        ("await Promise.resolve(5)", json!(5)),
        ("() => document.title.length", json!(0)),
        ("undefined", json!("undefined")),
    ] {
        assert_eq!(
            tab.evaluate(script, None, LIMIT).await.unwrap(),
            value,
            "{script}"
        );
    }
    let error = tab
        .evaluate("null.x", None, LIMIT)
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("TypeError: Cannot read properties of null") && error.contains("line 1"),
        "{error}"
    );
    let shape = Emulation {
        mobile: Some(true),
        dark: Some(true),
        ..Emulation::default()
    };
    tab.emulate(&shape).await.unwrap();
    let seen = "[innerWidth <= 980, matchMedia('(prefers-color-scheme: dark)').matches, navigator.maxTouchPoints > 0]";
    assert_eq!(
        tab.evaluate(seen, None, LIMIT).await.unwrap(),
        json!([true, true, true])
    );
}
