//! Pictures, console, network, measurements.

use haft_browser::{ConsoleLevel, ScreenshotArea};

use crate::{LIMIT, Opened, ref_of, snapshot, vectors::size};

#[tokio::test]
async fn console_and_network_are_kept_since_the_last_navigation() {
    let page = "<script>console.log('plain', {a: 1}); console.warn('careful'); for (let i=0;i<3;i++) console.error('bad');
        setTimeout(() => { throw new Error('boom') }); fetch('/data', {headers: {Authorization: 'Bearer secret'}}); fetch('/none')</script>";
    let data = "HTTP 200 OK\nContent-Type: application/json\nSet-Cookie: s=secret\n\n{\"x\":1}";
    let Some(opened) = Opened::with(&[("/", page), ("/data", data), ("/2", "two")]).await else {
        return;
    };
    let tab = opened.go("/").await;
    let (errors, _) = tab.console(ConsoleLevel::Error);
    let texts: Vec<(&str, u64)> = errors
        .iter()
        .map(|line| (line.text.as_str(), line.times))
        .collect();
    assert!(texts.contains(&("bad", 3)), "{texts:?}");
    assert!(
        texts.iter().any(|(text, _)| text.contains("Error: boom")),
        "{texts:?}"
    );
    assert!(!texts.iter().any(|(text, _)| text.contains("careful")));
    let (all, _) = tab.console(ConsoleLevel::Info);
    assert!(
        all.iter().any(|line| line.text == "plain {a: 1}"),
        "{all:?}"
    );
    let (requests, _) = tab.network();
    let of = |path: &str| requests.iter().find(|one| one.url.ends_with(path)).unwrap();
    assert_eq!(
        (of("/data").status, of("/none").status),
        (Some(200), Some(404))
    );
    assert_eq!(
        tab.body(of("/data")).await.unwrap().as_deref(),
        Some("{\"x\":1}")
    );
    assert!(!format!("{requests:?}").contains("secret"), "{requests:?}");
    tab.navigate(&opened.url("/2"), LIMIT).await.unwrap();
    assert!(tab.console(ConsoleLevel::Info).0.is_empty());
    assert!(
        tab.network()
            .0
            .iter()
            .all(|one| !one.url.ends_with("/data"))
    );
}

#[tokio::test]
async fn pictures_of_elements_pdfs_and_measurements() {
    let page = "<h1 style='font-size:80px'>Large</h1><button style='width:300px;height:100px;padding:0;border:0'>B</button>";
    let Some((_opened, tab)) = Opened::page(page).await else {
        return;
    };
    let button = ref_of(&snapshot(&tab).await, "button");
    let picture = tab
        .take_screenshot(ScreenshotArea::Element(button))
        .await
        .unwrap();
    assert_eq!((picture.shows, size(&picture)), ((300, 100), (300, 100)));
    assert!(tab.pdf().await.unwrap().starts_with(b"%PDF"));
    let trace = tab.trace(LIMIT).await.unwrap();
    assert!(
        trace.nodes > 3 && trace.heap > 1_000 && trace.requests.0 >= 1,
        "{trace:?}"
    );
    assert!(trace.ttfb.is_some() && trace.fcp.is_some(), "{trace:?}");
}
