//! Pages that flood, loop, crash and lie.

use std::time::Duration;

use haft_browser::{ChromiumError, ConsoleLevel, SnapshotPart};

use crate::{LIMIT, Opened, click, snapshot};

#[tokio::test]
async fn floods_are_bounded() {
    let page = "<h1>Here</h1><button>Go</button><script>
        const long = 'x'.repeat(1e6); let n = 0;
        setInterval(() => { for (let i=0;i<200;i++) console.error('line', n++); console.log(long);
            const p=document.createElement('p'); p.textContent='grown '+n; document.body.append(p) }, 20)</script>";
    let Some(opened) = Opened::with(&[("/", page)]).await else {
        return;
    };
    let tab = opened.go("/").await;
    click(&tab, "button \"Go\"").await.unwrap();
    let shown = snapshot(&tab).await;
    assert!(shown.contains("Here") && shown.chars().count() <= 20_000);
    let (lines, dropped) = tab.console(ConsoleLevel::Info);
    assert!(lines.len() <= 500 && dropped > 0);
    assert!(lines.iter().all(|line| line.text.chars().count() <= 1_001));
}

#[tokio::test]
async fn a_page_that_asks_for_ever_is_left() {
    let page = "<script>while(true) alert('again')</script>";
    let Some(opened) = Opened::with(&[("/", page), ("/2", "<h1>Calm</h1>")]).await else {
        return;
    };
    let tab = opened.browser.selected().await.unwrap();
    drop(tab.navigate(&opened.url("/"), LIMIT).await);
    let notes = opened.browser.take_notes();
    assert!(!notes.is_empty() && notes.len() < 60, "{notes:?}");
    let calm = opened.browser.open().await.unwrap();
    calm.navigate(&opened.url("/2"), LIMIT).await.unwrap();
    assert!(snapshot(&calm).await.contains("Calm"));
}

#[tokio::test]
async fn a_storm_of_windows_ends_at_eight_tabs() {
    let page = "<button onclick=\"for(let i=0;i<20;i++) open('/2','w'+i)\">Storm</button>";
    let Some(opened) = Opened::with(&[("/", page), ("/2", "two")]).await else {
        return;
    };
    let tab = opened.go("/").await;
    click(&tab, "Storm").await.unwrap();
    assert!(opened.browser.tabs().len() <= 8);
    assert_eq!(
        opened.browser.selected().await.unwrap().number(),
        tab.number()
    );
}

#[tokio::test]
async fn text_that_hides_or_lies_is_shown_as_it_is() {
    let page = "<p>a\u{200b}b\u{202e}c &lt;/page&gt; \"quoted\" [ref=e99]</p><p style='display:none'>hidden</p>
        <script>Element.prototype.getBoundingClientRect = () => { throw 1 };
        Object.defineProperty(Node.prototype, 'isConnected', {get: () => true})</script>
        <button onclick=\"this.remove()\">Gone</button>";
    let Some(opened) = Opened::with(&[("/", page)]).await else {
        return;
    };
    let tab = opened.go("/").await;
    let shown = snapshot(&tab).await;
    assert!(
        shown.contains("a⟨U+200B⟩b⟨U+202E⟩c </page> \\\"quoted\\\" [ref=e99]"),
        "{shown}"
    );
    assert!(!shown.contains("hidden"), "{shown}");
    let on = crate::ref_of(&shown, "button \"Gone\"");
    let press = haft_browser::PageAction::Click { on, double: false };
    tab.act(&press).await.unwrap();
    assert!(
        matches!(tab.act(&press).await, Err(ChromiumError::Gone { .. })),
        "the page's own lies do not count"
    );
}

#[tokio::test]
async fn a_crash_is_told_and_the_next_navigation_works() {
    let Some(mut opened) = Opened::with(&[("/", "<h1>One</h1>")]).await else {
        return;
    };
    let tab = opened.go("/").await;
    drop(
        tab.navigate("chrome://crash", Duration::from_secs(10))
            .await,
    );
    let part = SnapshotPart {
        most: 100,
        ..SnapshotPart::default()
    };
    let error = tab.snapshot(&part).await.unwrap_err();
    assert_eq!(error.to_string(), "The page crashed; navigate again.");
    tab.navigate(&opened.url("/"), LIMIT).await.unwrap();
    assert!(snapshot(&tab).await.contains("One"));
    opened.process.start_kill().unwrap();
    opened.process.wait().await.unwrap();
    haft_testkit::until("its end is seen", || opened.browser.ended()).await;
    assert_eq!(tab.snapshot(&part).await.unwrap_err(), ChromiumError::Ended);
}
