//! Queue of history items to print, in order. An image that is still being decoded blocks the items
//! after it.

use haft_terminal::HistoryItem;

/// Items to print.
#[derive(Default)]
pub(crate) struct HistoryQueue(Vec<QueuedHistory>);

enum QueuedHistory {
    Item(HistoryItem),
    /// Placeholder for the image with this number.
    Picture(u32),
}

impl HistoryQueue {
    pub(super) fn push(&mut self, item: HistoryItem) {
        self.0.push(QueuedHistory::Item(item));
    }

    pub(super) fn reserve_image(&mut self, picture: u32) {
        self.0.push(QueuedHistory::Picture(picture));
    }

    /// Replaces the placeholder of an image; `None` removes it, because the image cannot be drawn.
    pub(super) fn fill(&mut self, picture: u32, item: Option<HistoryItem>) {
        let is_place = |place: &QueuedHistory| matches!(place, QueuedHistory::Picture(number) if *number == picture);
        if let Some(at) = self.0.iter().position(is_place) {
            self.0.splice(at..=at, item.map(QueuedHistory::Item));
        }
    }

    /// Removes and returns the items that can be printed now.
    pub(super) fn take(&mut self) -> Vec<HistoryItem> {
        let is_picture = |place: &QueuedHistory| matches!(place, QueuedHistory::Picture(_));
        let until = self.0.iter().position(is_picture).unwrap_or(self.0.len());
        items(self.0.drain(..until))
    }

    /// Removes and returns all items, skipping images that are not ready.
    pub(super) fn take_all(&mut self) -> Vec<HistoryItem> {
        items(self.0.drain(..))
    }
}

fn items(queued: impl Iterator<Item = QueuedHistory>) -> Vec<HistoryItem> {
    let items = queued.filter_map(|place| match place {
        QueuedHistory::Item(item) => Some(item),
        QueuedHistory::Picture(_) => None,
    });
    items.collect()
}

impl Extend<HistoryItem> for HistoryQueue {
    fn extend<T: IntoIterator<Item = HistoryItem>>(&mut self, items: T) {
        self.0.extend(items.into_iter().map(QueuedHistory::Item));
    }
}
