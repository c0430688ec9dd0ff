//! Pages that flood, loop, crash and lie.

use std::time::Duration;

use haft_browser::{ChromiumError, ConsoleLevel, SnapshotPart};

use crate::{LIMIT, Opened, click, snapshot, value};

#[tokio::test]
async fn floods_are_bounded() {
    let page = "<h1>Here</h1><button>Go</button><script>
        const long = 'x'.repeat(1e6); let n = 0;
        setInterval(() => { for (let i=0;i<200;i++) console.error('line', n++); console.log(long);
            const p=document.createElement('p'); p.textContent='grown '+n; document.body.append(p) }, 20)</script>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
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
    let notes = opened.browser.take_notices();
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
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
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
        max_chars: 100,
        ..SnapshotPart::default()
    };
    let error = tab.snapshot(&part).await.unwrap_err();
    assert_eq!(error.to_string(), "The page crashed; navigate again.");
    tab.navigate(&opened.url("/"), LIMIT).await.unwrap();
    assert!(snapshot(&tab).await.contains("One"));
    opened.process.start_kill().unwrap();
    opened.process.wait().await.unwrap();
    haft_testkit::until("its end is seen", || opened.browser.has_exited()).await;
    assert_eq!(tab.snapshot(&part).await.unwrap_err(), ChromiumError::Ended);
}

#[tokio::test]
async fn thirty_thousand_elements_fit_a_snapshot() {
    let page = "<h1>Many</h1><div id=d></div><script>
        let rows = ''; for (let i=0;i<1000;i++) rows += '<i>x</i>';
        for (let i=0;i<30;i++) { const e = document.createElement('section'); e.innerHTML = rows; d.append(e); }</script>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    let part = SnapshotPart {
        max_chars: 20_000,
        ..SnapshotPart::default()
    };
    match tab.snapshot(&part).await {
        Ok(shown) => assert!(shown.contains("Many") && shown.chars().count() <= 20_000),
        // What the browser says of so many may be too long or too late; the reader is told which.
        Err(error) => {
            let said = error.to_string();
            assert!(
                said.contains("longer than") || said.contains("did not end"),
                "{said}"
            );
        }
    }
    assert_eq!(value(&tab, "1 + 1").await, 2);
}

#[tokio::test]
async fn frames_of_every_kind_are_in_the_snapshot() {
    let page = "<h1>Outer</h1><iframe sandbox='allow-scripts' title=boxed srcdoc='<button>In the box</button>'></iframe>
        <iframe title=data src='data:text/html,<button>In data</button>'></iframe>
        <iframe title=local src='about:blank'></iframe>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    let shown = snapshot(&tab).await;
    for words in [
        "button \"In the box\" [ref=e",
        "button \"In data\" [ref=e",
        "iframe \"local\"",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    click(&tab, "In the box").await.unwrap();
}

/// The page gets at what the snapshot is made with in no way.
#[tokio::test]
async fn a_page_cannot_lie_about_what_it_shows() {
    let page = "<button id=b onclick=\"out.textContent='clicked'\">Real</button><p id=out></p><script>
        for (const proto of [Element.prototype, Node.prototype, Document.prototype, HTMLElement.prototype, Object.prototype])
            for (const name of ['matches', 'closest', 'contains', 'getClientRects', 'scrollIntoView', 'focus', 'querySelector',
                'querySelectorAll', 'getRootNode', 'toJSON', 'innerText'])
                try { Object.defineProperty(proto, name, {get() { throw new Error('caught you') }, configurable: true}) } catch {}
        window.requestAnimationFrame = () => {}; window.setTimeout = () => {}; window.MutationObserver = null;
        window.Promise = null; window.Element = null; JSON.stringify = () => 'lies'; Array.prototype.map = null;</script>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    click(&tab, "Real").await.unwrap();
    assert!(snapshot(&tab).await.contains("clicked"));
}

#[tokio::test]
async fn tabs_of_others_are_apart() {
    let page = "<a href=/two target=_blank>Two</a>";
    let Some(opened) = Opened::with(&[("/", page), ("/two", "<h1>Second</h1>")]).await else {
        return;
    };
    let apart = opened.browser.open_apart(None).await.unwrap();
    apart.navigate(&opened.url("/"), LIMIT).await.unwrap();
    let own = opened.go("/two").await;
    assert_ne!(own.number(), apart.number());
    click(&apart, "Two").await.unwrap();
    haft_testkit::until("its second tab", || opened.browser.tabs().len() == 3).await;
    let owners: Vec<_> = opened.browser.tabs().iter().map(|tab| tab.owner).collect();
    let owner = Some(apart.number());
    assert_eq!(
        owners.iter().filter(|one| **one == owner).count(),
        2,
        "{owners:?}"
    );
    opened.browser.close_tab(own.number()).await.unwrap();
    let next = opened.browser.selected().await.unwrap();
    assert!(next.number() > 3, "none of the other's was taken");
    opened.browser.close_apart(apart.number());
    haft_testkit::until("they are closed", || opened.browser.tabs().len() == 1).await;
}

#[tokio::test]
async fn a_field_can_be_concealed_and_knows_its_frames() {
    let inner = "<label>Inner <input id=i></label>";
    let outer = "<label>Outer <input id=o></label><iframe title=f src=/inner></iframe>";
    let Some(opened) = Opened::with(&[("/", outer), ("/inner", inner)]).await else {
        return;
    };
    let tab = opened.go("/").await;
    let shown = snapshot(&tab).await;
    let around = |words: &str| tab.addresses_around(crate::ref_of(&shown, words));
    assert_eq!(around("\"Outer\"").await.unwrap(), [opened.url("/")]);
    assert_eq!(
        around("\"Inner\"").await.unwrap(),
        [opened.url("/inner"), opened.url("/")]
    );
    tab.conceal(crate::ref_of(&shown, "\"Outer\""))
        .await
        .unwrap();
    let style = value(&tab, "getComputedStyle(o).webkitTextSecurity").await;
    assert_eq!(style, "disc");
}

/// The script is stopped, so that the tab can be used again.
#[tokio::test]
async fn a_script_of_a_page_that_never_ends_is_stopped() {
    let looping = "<h1>Loops</h1><script>setTimeout(() => { while (true) {} }, 100)</script>";
    let Some(opened) = Opened::with(&[("/", looping), ("/2", "<h1>Calm</h1>")]).await else {
        return;
    };
    let tab = opened.browser.selected().await.unwrap();
    let part = SnapshotPart {
        max_chars: 1_000,
        ..SnapshotPart::default()
    };
    let mut said = None;
    if let Ok(_loads) = tab.navigate(&opened.url("/"), LIMIT).await {
        said = tab.snapshot(&part).await.err();
    }
    // The loop may begin before the page has come or after.
    if let Some(said) = said {
        assert!(
            said.to_string().contains("did not end and was stopped"),
            "{said}"
        );
    }
    tab.navigate(&opened.url("/2"), LIMIT).await.unwrap();
    assert!(snapshot(&tab).await.contains("Calm"));
}
