//! The cache of fetched pages. Each session has its own cache in memory, so that no session sees
//! the pages of another one.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use super::page::FetchedPage;

/// The maximum number of cached pages, and of their bytes.
const MAX_PAGES: usize = 64;
const MAX_BYTES: usize = 32 << 20;

pub(super) struct PageCache {
    lasts: Duration,
    pages: Mutex<VecDeque<CachedPage>>,
}

struct CachedPage {
    url: String,
    since: Instant,
    page: Arc<FetchedPage>,
}

impl PageCache {
    pub(super) fn new(lasts: Duration) -> Self {
        Self {
            lasts,
            pages: Mutex::default(),
        }
    }

    /// Returns the page with exactly this address.
    pub(super) fn find(&self, url: &str) -> Option<Arc<FetchedPage>> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|kept| kept.since.elapsed() < self.lasts);
        let kept = pages.iter().find(|kept| kept.url == url)?;
        Some(Arc::clone(&kept.page))
    }

    pub(super) fn insert(&self, url: &str, page: &Arc<FetchedPage>) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.retain(|kept| kept.url != url);
        pages.push_back(CachedPage {
            url: url.to_owned(),
            since: Instant::now(),
            page: Arc::clone(page),
        });
        let bytes = |pages: &VecDeque<CachedPage>| -> usize {
            pages.iter().map(|kept| kept.page.weight()).sum()
        };
        while pages.len() > MAX_PAGES || (pages.len() > 1 && bytes(&pages) > MAX_BYTES) {
            pages.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(text: &str) -> Arc<FetchedPage> {
        Arc::new(FetchedPage::from_text(
            "https://a.example/",
            text.to_owned(),
        ))
    }

    #[test]
    fn a_page_is_kept_for_a_while_and_by_its_whole_address() {
        let cache = PageCache::new(Duration::from_secs(60));
        cache.insert("https://a.example/?q=1", &page("one"));
        assert!(cache.find("https://a.example/?q=1").is_some());
        assert!(cache.find("https://a.example/?q=2").is_none());
        let none = PageCache::new(Duration::ZERO);
        none.insert("https://a.example/", &page("one"));
        assert!(none.find("https://a.example/").is_none());
    }

    #[test]
    fn the_oldest_goes_first() {
        let cache = PageCache::new(Duration::from_secs(60));
        for number in 0..=MAX_PAGES {
            cache.insert(&number.to_string(), &page("x"));
        }
        assert!(cache.find("0").is_none());
        assert!(cache.find("1").is_some());
        let large = page(&"x".repeat(MAX_BYTES));
        cache.insert("large", &large);
        assert!(cache.find("1").is_none() && cache.find("large").is_some());
    }
}
