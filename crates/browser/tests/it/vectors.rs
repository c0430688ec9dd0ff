//! The vectors that need no session of ours, by their numbers.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use haft_browser::{
    BrowserRequest, ChromiumError, PageAction, RequestInterceptor, RequestVerdict, ScreenshotArea,
    ServedFile, SnapshotPart, VerdictFuture,
};
use serde_json::json;

use crate::{LIMIT, Opened, click, ref_of, snapshot, value};

#[tokio::test]
async fn v1_a_page_is_looked_at() {
    let Some(opened) =
        Opened::with(&[("/", "<title>T</title><h1>Hello</h1><p>Some text.</p>")]).await
    else {
        return;
    };
    let tab = opened.browser.selected().await.unwrap();
    let arrival = tab.navigate(&opened.url("/"), LIMIT).await.unwrap();
    assert_eq!((arrival.title.as_str(), arrival.status), ("T", Some(200)));
    assert_eq!(
        snapshot(&tab).await,
        "- heading \"Hello\" [level=1]\n- paragraph \"Some text.\"\n"
    );
}

#[tokio::test]
async fn v2_a_click_tells_what_changed() {
    let page = "<button onclick=\"out.textContent='Saved it'\">Save</button><p id=out>nothing</p><ul><li>one<li>two</ul>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    let acted = click(&tab, "Save").await.unwrap();
    assert!(!acted.navigated && acted.remarks.is_empty());
    let told = tab.difference(4_000).await.unwrap();
    assert!(
        told.contains("+ paragraph \"Saved it\"\n") && told.contains("- paragraph \"nothing\"\n"),
        "{told}"
    );
    assert!(!told.contains("one"), "{told}");
}

#[tokio::test]
async fn v3_v4_a_ref_means_its_element_or_nothing() {
    let page = "<div id=a><button onclick=\"hit('old')\">Buy</button></div><p id=log></p>
        <script>function hit(x){log.textContent+=x}
        function again(){a.innerHTML='<button onclick=\"hit(\\'new\\')\">Buy</button>'}</script>";
    let Some(opened) = Opened::with(&[("/", page), ("/other", "<button>Buy</button>")]).await
    else {
        return;
    };
    let tab = opened.go("/").await;
    let first = ref_of(&snapshot(&tab).await, "Buy");
    value(
        &tab,
        "document.body.append(document.createElement('hr'), 'more')",
    )
    .await;
    assert_eq!(
        ref_of(&snapshot(&tab).await, "Buy"),
        first,
        "an unrelated change"
    );
    value(&tab, "window.kept = a.firstChild; again()").await;
    let error = tab
        .act(&PageAction::Click {
            on: first,
            double: false,
        })
        .await
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "e{first} no longer exists: its element was removed from the page. Take a snapshot."
        )
    );
    let second = ref_of(&snapshot(&tab).await, "Buy");
    assert_ne!(second, first);
    value(&tab, "delete window.kept").await;
    tab.navigate(&opened.url("/other"), LIMIT).await.unwrap();
    let error = tab
        .act(&PageAction::Click {
            on: second,
            double: false,
        })
        .await
        .unwrap_err()
        .to_string();
    let (from, to) = (opened.url("/"), opened.url("/other"));
    assert_eq!(
        error,
        format!(
            "e{second} no longer exists: the page navigated from {from} to {to}. Take a snapshot."
        )
    );
    assert!(
        ref_of(&snapshot(&tab).await, "Buy") > second,
        "never given again"
    );
    let error = tab
        .act(&PageAction::Hover(999))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("e999 is not a ref"), "{error}");
}

#[tokio::test]
async fn v5_an_element_with_a_listener_only_has_a_ref() {
    let page = "<div id=d>Open me</div><p id=out></p><script>d.addEventListener('click',()=>out.textContent='opened')</script>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    click(&tab, "Open me").await.unwrap();
    assert!(snapshot(&tab).await.contains("opened"));
}

#[tokio::test]
async fn v6_what_covers_an_element_is_named() {
    let page = "<button>Go</button><div role=dialog aria-label=Cookies tabindex=0 style='position:fixed;inset:0;background:#fff8'>We use them</div>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    let error = click(&tab, "Go").await.unwrap_err();
    let ChromiumError::Covered { by, .. } = &error else {
        panic!("{error}")
    };
    assert!(by.contains("dialog \"Cookies\" [ref=e"), "{by}");
}

#[tokio::test]
async fn v7_frames_of_other_origins_are_one_page() {
    let inner = "<button onclick=\"this.textContent='clicked'\">In frame</button>";
    let outer = "<h1>Outer</h1><div style='height:1500px'></div><script>
        document.write('<iframe title=inner src=http://localhost:' + location.port + '/inner></iframe>')</script>";
    let Some(opened) = Opened::with(&[("/", outer), ("/inner", inner)]).await else {
        return;
    };
    let tab = opened.go("/").await;
    let shown = snapshot(&tab).await;
    assert!(shown.contains("- iframe \"inner\" [ref=e"), "{shown}");
    assert!(
        shown.contains("\n  - button \"In frame\" [ref=e"),
        "{shown}"
    );
    click(&tab, "In frame").await.unwrap();
    assert!(snapshot(&tab).await.contains("clicked"));
}

#[tokio::test]
async fn v8_fields_are_filled_with_their_events() {
    let page = "<label>Name <input id=n></label><label><input type=checkbox id=c> Agree</label>
        <label>Size <select id=s><option value=s>Small<option value=l>Large</select></label><pre id=log></pre>
        <script>for (const e of [n,c,s]) for (const t of ['input','change'])
            e.addEventListener(t, () => log.textContent += e.id + ':' + t + ' ')</script>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    let shown = snapshot(&tab).await;
    let fields = vec![
        (ref_of(&shown, "textbox \"Name\""), "Zoë".to_owned()),
        (ref_of(&shown, "checkbox \"Agree\""), "true".to_owned()),
        (ref_of(&shown, "combobox \"Size\""), "Large".to_owned()),
    ];
    let acted = tab.act(&PageAction::Fill(fields)).await.unwrap();
    assert!(acted.remarks.is_empty(), "{:?}", acted.remarks);
    let held = value(&tab, "[n.value, c.checked, s.value, log.textContent]").await;
    assert_eq!(
        held,
        json!([
            "Zoë",
            true,
            "l",
            "n:input n:change c:input c:change s:input s:change "
        ])
    );
    assert!(snapshot(&tab).await.contains("value=\"Zoë\""));
}

#[tokio::test]
async fn v9_an_alert_is_told_and_the_page_goes_on() {
    let page =
        "<button onclick=\"alert('Mind it');out.textContent='after'\">Go</button><p id=out></p>";
    let Some((opened, tab)) = Opened::page(page).await else {
        return;
    };
    click(&tab, "Go").await.unwrap();
    assert_eq!(
        opened.browser.take_notices(),
        ["an alert showed \"Mind it\" (accepted)"]
    );
    assert!(snapshot(&tab).await.contains("after"));
}

#[tokio::test]
async fn v10_a_question_ends_the_action_and_waits() {
    let page = "<button onclick=\"out.textContent=confirm('Sure?')\">Go</button><p id=out></p>";
    let Some((opened, tab)) = Opened::page(page).await else {
        return;
    };
    let error = click(&tab, "Go").await.unwrap_err().to_string();
    assert_eq!(
        error,
        "a confirm dialog is open: \"Sure?\". Answer it with the action dialog."
    );
    let refused = tab
        .snapshot(&SnapshotPart {
            max_chars: 100,
            ..SnapshotPart::default()
        })
        .await;
    assert!(matches!(refused, Err(ChromiumError::DialogOpen { .. })));
    assert_eq!(
        opened.browser.tabs()[0].dialog.as_ref().unwrap().message,
        "Sure?"
    );
    tab.answer_dialog(true, None).await.unwrap();
    assert!(snapshot(&tab).await.contains("\"true\""));
    assert!(tab.answer_dialog(true, None).await.is_err());
}

#[tokio::test]
async fn v11_an_alert_while_loading_holds_up_nothing() {
    let Some(opened) =
        Opened::with(&[("/", "<script>alert('first')</script><h1>There</h1>")]).await
    else {
        return;
    };
    let begun = Instant::now();
    let tab = opened.go("/").await;
    // Far below the time at which a dialog is dismissed unasked.
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert!(snapshot(&tab).await.contains("There"));
}

#[tokio::test]
async fn v12_a_new_tab_is_told_and_not_selected() {
    let page = "<a href=/two target=_blank>Two</a>";
    let Some(opened) = Opened::with(&[("/", page), ("/two", "<h1>Second</h1>")]).await else {
        return;
    };
    let tab = opened.go("/").await;
    click(&tab, "Two").await.unwrap();
    haft_testkit::until("the second tab", || opened.browser.tabs().len() == 2).await;
    let tabs = opened.browser.tabs();
    assert!(tabs[0].selected && !tabs[1].selected);
    assert_eq!(
        opened.browser.take_notices(),
        ["tab 1 opened tab 2 (not selected)"]
    );
    let second = opened.browser.select(2).await.unwrap();
    second.wait_for(Some("Second"), None, LIMIT).await.unwrap();
    opened.browser.close_tab(2).await.unwrap();
    assert_eq!(opened.browser.selected().await.unwrap().number(), 1);
}

#[tokio::test]
async fn v13_a_long_page_fits_and_is_found_in() {
    let page = "<h1>List</h1><ul id=l></ul><script>
        for (let i=0;i<20000;i++){const e=document.createElement('li');e.textContent='item number '+i;l.append(e)}</script>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    let shown = snapshot(&tab).await;
    assert!(shown.chars().count() <= 20_000, "{}", shown.chars().count());
    assert!(
        shown.contains("… ") && shown.contains(" nodes, snapshot ref=e"),
        "{shown}"
    );
    let find = SnapshotPart {
        find: Some("item number 19999".to_owned()),
        max_chars: 20_000,
        within: None,
    };
    let found = tab.snapshot(&find).await.unwrap();
    assert!(
        found.contains("item number 19999") && found.lines().count() < 10,
        "{found}"
    );
}

/// Refuses hosts and serves two files.
struct Rules;

impl RequestInterceptor for Rules {
    fn intercept<'a>(&'a self, request: &'a BrowserRequest) -> VerdictFuture<'a> {
        Box::pin(async move {
            let file = |content_type: &str, body: &str| {
                RequestVerdict::Serve(ServedFile {
                    status: 200,
                    content_type: content_type.to_owned(),
                    body: body.as_bytes().to_vec(),
                })
            };
            match request.url.as_str() {
                "http://haft.localhost/index.html" => file(
                    "text/html",
                    "<p id=out></p><script type=module src=m.js></script>",
                ),
                "http://haft.localhost/m.js" => file(
                    "text/javascript",
                    "out.textContent = (await fetch('../../etc/passwd')).status + ' module'",
                ),
                url if url.starts_with("http://haft.localhost/") => {
                    RequestVerdict::Serve(ServedFile {
                        status: 404,
                        content_type: "text/plain".to_owned(),
                        body: Vec::new(),
                    })
                }
                url if url.starts_with("http://127.0.0.1") => RequestVerdict::Pass,
                url if request.is_page => RequestVerdict::Refuse(format!("{url} was not allowed")),
                _ => RequestVerdict::Pass,
            }
        })
    }
}

#[tokio::test]
async fn v14_v15_a_page_goes_nowhere_unasked() {
    let pages = [
        (
            "/",
            "<h1>Here</h1><a href=http://refused.example/x>Away</a>",
        ),
        (
            "/redirect",
            "HTTP 302 Found\nLocation: http://169.254.169.254/\n\n",
        ),
    ];
    let Some(opened) = Opened::judged(&pages, Arc::new(Rules)).await else {
        return;
    };
    let tab = opened.go("/").await;
    let error = click(&tab, "Away").await.unwrap_err().to_string();
    assert_eq!(error, "http://refused.example/x was not allowed");
    assert!(snapshot(&tab).await.contains("Here"), "the page stays");
    let error = tab
        .navigate(&opened.url("/redirect"), LIMIT)
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(error, "http://169.254.169.254/ was not allowed");
    assert_eq!(tab.url(), opened.url("/"));
    assert!(snapshot(&tab).await.contains("Here"));
}

#[tokio::test]
async fn v17_a_script_without_end_is_stopped() {
    let Some((_opened, tab)) = Opened::page("<h1>Still here</h1>").await else {
        return;
    };
    let error = tab
        .evaluate("while(true){}", None, Duration::from_millis(500))
        .await
        .unwrap_err();
    assert!(matches!(error, ChromiumError::Timeout { .. }), "{error}");
    assert!(snapshot(&tab).await.contains("Still here"));
}

#[tokio::test]
async fn v18_a_picture_has_a_size_that_models_take() {
    let Some(opened) = Opened::with(&[(
        "/",
        "<div style='height:30000px;background:linear-gradient(red,blue)'>x</div>",
    )])
    .await
    else {
        return;
    };
    let tab = opened.go("/").await;
    let picture = tab.take_screenshot(ScreenshotArea::Page).await.unwrap();
    assert_eq!(picture.shows.1, 8000);
    assert!(picture.cut_from.is_some_and(|(_, height)| height >= 30_000));
    let (width, height) = size(&picture);
    assert!(
        width.max(height) <= 1_568 && height > 1_400,
        "{width}x{height}"
    );
    let view = tab.take_screenshot(ScreenshotArea::View).await.unwrap();
    assert_eq!((size(&view), view.cut_from), ((1280, 800), None));
}

/// Of a PNG or JPEG, by its own words.
pub(crate) fn size(picture: &haft_browser::Screenshot) -> (u32, u32) {
    let bytes = &picture.bytes;
    if picture.media_type == "image/png" {
        let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        return (number(16), number(20));
    }
    let mut at = 2;
    while bytes[at] == 0xff && !matches!(bytes[at + 1], 0xc0..=0xc2) {
        at += 2 + usize::from(u16::from_be_bytes([bytes[at + 2], bytes[at + 3]]));
    }
    let number = |at: usize| u32::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]));
    (number(at + 7), number(at + 5))
}

#[tokio::test]
async fn v19_files_are_served_where_modules_work() {
    let Some(opened) = Opened::judged(&[], Arc::new(Rules)).await else {
        return;
    };
    let tab = opened.browser.selected().await.unwrap();
    tab.navigate("http://haft.localhost/index.html", LIMIT)
        .await
        .unwrap();
    tab.wait_for(Some("404 module"), None, LIMIT).await.unwrap();
}

#[tokio::test]
async fn v20_the_program_ends_with_its_pipe() {
    let Some(opened) = Opened::with(&[("/", "<h1>x</h1>")]).await else {
        return;
    };
    drop(opened.go("/").await);
    let Opened {
        browser,
        mut process,
        folder,
        server,
    } = opened;
    drop(browser);
    let ended = tokio::time::timeout(Duration::from_secs(60), process.wait()).await;
    assert!(ended.is_ok(), "it goes on without its pipe");
    drop((folder, server));
}
