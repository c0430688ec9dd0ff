//! A page as a tree of text lines, built from Chromium's accessibility trees of all frames, without
//! empty elements.

mod diff;
mod print;
mod tree;

use std::{collections::HashSet, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::json;

use crate::{
    error::{ChromiumError, Result, unusable},
    refs::RefEntry,
    tab::Tab,
};

pub(crate) use tree::SnapshotNode;
use tree::{AxTree, FrameTrees};

/// The maximum number of frames, besides the main frame, whose content is included.
const MAX_FRAMES: usize = 50;
/// The time limit for the tree of a very large page.
const TREE_TIMEOUT: Duration = Duration::from_secs(60);

/// The lines of a page at its last snapshot.
#[derive(Clone)]
pub(crate) struct LastSnapshot {
    lines: Arc<Vec<String>>,
    url: String,
}

/// The part of a page to include in a snapshot.
#[derive(Debug, Clone, Default)]
pub struct SnapshotPart {
    /// The ref of an element, to include only its contents.
    pub within: Option<u32>,
    /// A text, to include only the lines around its occurrences.
    pub find: Option<String>,
    /// The maximum number of characters.
    pub max_chars: usize,
}

#[derive(Deserialize)]
struct CapturedSnapshot {
    documents: Vec<CapturedDocument>,
}

#[derive(Deserialize)]
struct CapturedDocument {
    nodes: CapturedNodes,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CapturedNodes {
    #[serde(default)]
    backend_node_id: Vec<i64>,
    is_clickable: Option<RareFlags>,
}

#[derive(Deserialize)]
struct RareFlags {
    index: Vec<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameOwner {
    backend_node_id: i64,
}

/// Explains the error for a page whose tree exceeds the size limit of messages.
fn too_large(error: ChromiumError) -> ChromiumError {
    match error {
        ChromiumError::TooLong { .. } => unusable(format!(
            "The page is too large for a snapshot: {error}. Use screenshot, or evaluate for a part of it."
        )),
        other => other,
    }
}

impl Tab {
    /// Returns a snapshot of the page, or of a part of it. The whole snapshot is stored, so that
    /// later only the changes need to be reported.
    ///
    /// # Errors
    /// The page does not answer, or the ref's element no longer exists.
    pub async fn snapshot(&self, part: &SnapshotPart) -> Result<String> {
        let root = self.build_tree().await?;
        let lines = self.store_snapshot(&root)?;
        let root = match part.within {
            None => &root,
            Some(number) => {
                let node = self.element(number).await?.entry.node;
                root.find_node(node)
                    .ok_or_else(|| unusable(format!("e{number} shows nothing: it is hidden.")))?
            }
        };
        if let Some(text) = &part.find {
            return Ok(match part.within {
                None => print::lines_around(&lines, text, part.max_chars),
                Some(_) => print::lines_around(&print::lines(root), text, part.max_chars),
            });
        }
        let budget = print::SnapshotPrinter {
            tab: self,
            most: part.max_chars,
        };
        Ok(budget.print(root))
    }

    /// Returns the changes since the last snapshot.
    ///
    /// # Errors
    /// The page does not answer.
    pub async fn difference(&self, most: usize) -> Result<String> {
        let before = self.with(|tab| tab.last_snapshot.clone())?;
        let root = self.build_tree().await?;
        let lines = self.store_snapshot(&root)?;
        match before {
            Some(before) if before.url == self.url() || !before.lines.is_empty() => {
                Ok(diff::difference(&before.lines, &lines, most))
            }
            _ => Ok(print::SnapshotPrinter { tab: self, most }.print(&root)),
        }
    }

    /// Measures the time that Chromium needs for the queries of a snapshot. For benchmarks.
    ///
    /// # Errors
    /// The page does not answer.
    #[doc(hidden)]
    pub async fn answer_time(&self) -> Result<Duration> {
        let main = self.with(|tab| tab.main.clone())?;
        let began = std::time::Instant::now();
        let captured = self.call_within::<crate::cdp_pipe::IgnoredResult>(
            TREE_TIMEOUT,
            "DOMSnapshot.captureSnapshot",
            json!({"computedStyles": [], "includePaintOrder": false}),
        );
        let whole = self.call_within::<crate::cdp_pipe::IgnoredResult>(
            TREE_TIMEOUT,
            "Accessibility.getFullAXTree",
            json!({"frameId": main}),
        );
        let (captured, whole) = tokio::join!(captured, whole);
        captured?;
        whole?;
        Ok(began.elapsed())
    }

    /// Returns the lines of the page that are similar to `text`.
    pub(crate) async fn similar_lines(&self, text: &str) -> Result<Vec<String>> {
        let root = self.build_tree().await?;
        Ok(print::similar_lines(&print::lines(&root), text))
    }

    /// Returns the line of one element.
    pub(crate) async fn line_of(&self, node: i64) -> Result<Option<String>> {
        let root = self.build_tree().await?;
        let line = root.find_owner(node).map(|node| {
            let mut node = node.shallow();
            if node.number.is_none() {
                node.number = node
                    .backend
                    .and_then(|backend| self.assign_ref(node.frame.as_ref(), backend));
            }
            node.line()
        });
        Ok(line)
    }

    fn store_snapshot(&self, root: &SnapshotNode) -> Result<Arc<Vec<String>>> {
        let lines = Arc::new(print::lines(root));
        let kept = Arc::clone(&lines);
        let url = self.url();
        self.with(|tab| tab.last_snapshot = Some(LastSnapshot { lines: kept, url }))?;
        Ok(lines)
    }

    pub(crate) fn assign_ref(&self, frame: &str, node: i64) -> Option<u32> {
        let mut state = self.shared.state();
        let tab = state.tabs.get(&self.number)?;
        let loader = tab.frames.get(frame)?.loader.clone();
        let entry = RefEntry {
            tab: self.number,
            frame: frame.to_owned(),
            loader,
            url: tab.url(),
            node,
        };
        Some(state.refs.assign(entry))
    }

    /// Queries the trees of all frames and merges them.
    async fn build_tree(&self) -> Result<SnapshotNode> {
        self.is_awake().await?;
        let (main, mut frames) = self.with(|tab| {
            let frames: Vec<String> = tab
                .frames
                .keys()
                .filter(|frame| **frame != tab.main)
                .cloned()
                .collect();
            (tab.main.clone(), frames)
        })?;
        frames.sort_unstable();
        frames.truncate(MAX_FRAMES);
        let captured = self.call_within::<CapturedSnapshot>(
            TREE_TIMEOUT,
            "DOMSnapshot.captureSnapshot",
            json!({"computedStyles": [], "includePaintOrder": false}),
        );
        let whole = self.call_within::<AxTree>(
            TREE_TIMEOUT,
            "Accessibility.getFullAXTree",
            json!({"frameId": main}),
        );
        let (captured, whole) = tokio::join!(captured, whole);
        let whole = whole.map_err(too_large)?;
        let captured = captured.map_err(too_large)?;
        let mut clickable = HashSet::new();
        for document in captured.documents {
            let nodes = document.nodes;
            let indexes = nodes
                .is_clickable
                .map(|flags| flags.index)
                .unwrap_or_default();
            clickable.extend(
                indexes
                    .iter()
                    .filter_map(|&at| nodes.backend_node_id.get(at)),
            );
        }
        let mut trees = FrameTrees::new(main.clone(), whole, clickable);
        for frame in frames {
            // A frame may disappear during the queries.
            let owner = self.call::<FrameOwner>("DOM.getFrameOwner", json!({"frameId": frame}));
            let tree = self.call_within::<AxTree>(
                TREE_TIMEOUT,
                "Accessibility.getFullAXTree",
                json!({"frameId": frame}),
            );
            let (owner, tree) = tokio::join!(owner, tree);
            if let (Ok(owner), Ok(tree)) = (owner, tree) {
                trees.add(owner.backend_node_id, frame, tree);
            }
        }
        let mut root = trees.build();
        self.assign_refs(&mut root);
        Ok(root)
    }

    fn assign_refs(&self, root: &mut SnapshotNode) {
        let mut state = self.shared.state();
        let Some(tab) = state.tabs.get(&self.number) else {
            return;
        };
        let url = tab.url();
        let loaders: std::collections::HashMap<String, String> = tab
            .frames
            .iter()
            .map(|(name, frame)| (name.clone(), frame.loader.clone()))
            .collect();
        let (number, refs) = (self.number, &mut state.refs);
        root.visit(&mut |node| {
            let (true, Some(backend)) = (node.acts, node.backend) else {
                return;
            };
            let Some(loader) = loaders.get(node.frame.as_ref()) else {
                return;
            };
            node.number = Some(refs.assign(RefEntry {
                tab: number,
                frame: node.frame.as_ref().to_owned(),
                loader: loader.clone(),
                url: url.clone(),
                node: backend,
            }));
        });
    }
}
