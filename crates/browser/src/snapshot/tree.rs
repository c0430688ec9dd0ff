//! Accessibility trees from Chromium, and the tree of lines that is built from them.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    marker::PhantomData,
    sync::Arc,
};

use serde::{
    Deserialize, Deserializer,
    de::{SeqAccess, Visitor},
};
use serde_json::Value;

use crate::text::{one_line, quoted};

/// The maximum length of names, and of text, in characters.
const MAX_NAME: usize = 200;
const MAX_TEXT: usize = 1_000;
/// The maximum number of nodes of a page; further nodes are left out and counted.
const MAX_NODES: usize = 60_000;
/// The maximum nesting depth of nodes.
const MAX_DEPTH: usize = 250;

#[derive(Deserialize)]
pub(super) struct AxTree {
    #[serde(deserialize_with = "deserialize_kept")]
    nodes: Vec<AxNode>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AxNode {
    node_id: AxId,
    #[serde(default)]
    ignored: bool,
    role: Option<AxValue>,
    name: Option<AxValue>,
    value: Option<AxValue>,
    #[serde(default, deserialize_with = "deserialize_kept")]
    properties: Vec<AxProperty>,
    #[serde(default)]
    child_ids: Vec<AxId>,
    #[serde(rename = "backendDOMNodeId")]
    backend: Option<i64>,
}

/// A node id. Chromium sends it as a string; it is stored as a number to save memory, because a tree
/// contains about twice as many ids as nodes.
#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Hash)]
#[serde(try_from = "String")]
struct AxId(i64);

impl TryFrom<String> for AxId {
    type Error = std::num::ParseIntError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

#[derive(Deserialize)]
struct AxValue {
    #[serde(default)]
    value: Value,
}

#[derive(Deserialize)]
struct AxProperty {
    name: AxPropertyName,
    value: AxValue,
}

/// The properties that are shown for an element, or that decide whether the element is shown.
#[derive(Deserialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum AxPropertyName {
    Busy,
    Checked,
    Disabled,
    Editable,
    Expanded,
    Focusable,
    Focused,
    Invalid,
    Level,
    Modal,
    Pressed,
    Readonly,
    Required,
    Selected,
    #[serde(other)]
    Other,
}

/// Decides whether an element of a list is needed at all.
trait KeepFilter {
    fn is_kept(&self) -> bool;
}

impl KeepFilter for AxNode {
    /// Excludes line breaks, and inline text boxes, which repeat a text split into lines.
    fn is_kept(&self) -> bool {
        !matches!(self.role(), "InlineTextBox" | "LineBreak")
    }
}

impl KeepFilter for AxProperty {
    fn is_kept(&self) -> bool {
        self.name != AxPropertyName::Other
    }
}

/// Deserializes a list and drops unneeded elements immediately.
fn deserialize_kept<'de, T: Deserialize<'de> + KeepFilter, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct KeptList<T>(PhantomData<T>);

    impl<'de, T: Deserialize<'de> + KeepFilter> Visitor<'de> for KeptList<T> {
        type Value = Vec<T>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Vec<T>, A::Error> {
            let mut list = Vec::new();
            while let Some(one) = all.next_element::<T>()? {
                if one.is_kept() {
                    list.push(one);
                }
            }
            list.shrink_to_fit();
            Ok(list)
        }
    }

    deserializer.deserialize_seq(KeptList(PhantomData))
}

impl AxNode {
    fn role(&self) -> &str {
        text_of(self.role.as_ref())
    }

    fn property(&self, name: AxPropertyName) -> Option<&Value> {
        let found = self
            .properties
            .iter()
            .find(|property| property.name == name);
        found.map(|property| &property.value.value)
    }

    fn is(&self, name: AxPropertyName) -> bool {
        self.property(name)
            .is_some_and(|value| value == true || value == "true")
    }
}

fn text_of(value: Option<&AxValue>) -> &str {
    value
        .and_then(|value| value.value.as_str())
        .unwrap_or_default()
}

/// A line of a snapshot, with its children.
#[derive(Clone)]
pub(crate) struct SnapshotNode {
    pub(crate) role: String,
    pub(crate) name: String,
    pub(crate) value: Option<String>,
    pub(crate) states: Vec<String>,
    pub(crate) backend: Option<i64>,
    pub(crate) frame: Arc<str>,
    /// True if the element can be acted on, so it gets a ref.
    pub(crate) acts: bool,
    pub(crate) number: Option<u32>,
    pub(crate) children: Vec<SnapshotNode>,
}

impl SnapshotNode {
    pub(crate) fn line(&self) -> String {
        let mut line = format!("- {}", self.role);
        if !self.name.is_empty() {
            line.push(' ');
            line.push_str(&quoted(&self.name));
        }
        if let Some(number) = self.number {
            line.push_str(&format!(" [ref=e{number}]"));
        }
        if let Some(value) = &self.value {
            line.push_str(" value=");
            line.push_str(&quoted(value));
        }
        for state in &self.states {
            line.push_str(&format!(" [{state}]"));
        }
        line
    }

    /// Returns a copy without children.
    pub(super) fn shallow(&self) -> Self {
        Self {
            role: self.role.clone(),
            name: self.name.clone(),
            value: self.value.clone(),
            states: self.states.clone(),
            backend: self.backend,
            frame: Arc::clone(&self.frame),
            acts: self.acts,
            number: self.number,
            children: Vec::new(),
        }
    }

    pub(super) fn visit(&mut self, each: &mut impl FnMut(&mut Self)) {
        each(self);
        for child in &mut self.children {
            child.visit(each);
        }
    }

    pub(super) fn count(&self) -> usize {
        1 + self.children.iter().map(Self::count).sum::<usize>()
    }

    pub(super) fn find_node(&self, backend: i64) -> Option<&Self> {
        if self.backend == Some(backend) {
            return Some(self);
        }
        self.children
            .iter()
            .find_map(|child| child.find_node(backend))
    }

    /// Returns the node with this backend id.
    pub(super) fn find_owner(&self, backend: i64) -> Option<&Self> {
        self.find_node(backend)
    }
}

/// The trees of a page's frames.
pub(super) struct FrameTrees {
    main: (Arc<str>, AxNodeTree),
    /// Keyed by the node of the element that contains the frame.
    others: HashMap<i64, (Arc<str>, AxNodeTree)>,
    clickable: HashSet<i64>,
}

struct AxNodeTree {
    nodes: Vec<AxNode>,
    by_id: HashMap<AxId, usize>,
}

impl AxNodeTree {
    fn new(tree: AxTree) -> Self {
        let by_id = tree
            .nodes
            .iter()
            .enumerate()
            .map(|(at, node)| (node.node_id, at))
            .collect();
        Self {
            nodes: tree.nodes,
            by_id,
        }
    }
}

struct SnapshotBuilder<'a> {
    frames: &'a FrameTrees,
    left: usize,
    dropped: usize,
}

impl FrameTrees {
    pub(super) fn new(main: String, tree: AxTree, clickable: HashSet<i64>) -> Self {
        Self {
            main: (Arc::from(main), AxNodeTree::new(tree)),
            others: HashMap::new(),
            clickable,
        }
    }

    pub(super) fn add(&mut self, owner: i64, frame: String, tree: AxTree) {
        self.others
            .insert(owner, (Arc::from(frame), AxNodeTree::new(tree)));
    }

    pub(super) fn build(&self) -> SnapshotNode {
        let mut builder = SnapshotBuilder {
            frames: self,
            left: MAX_NODES,
            dropped: 0,
        };
        let (frame, tree) = &self.main;
        let mut children = Vec::new();
        if !tree.nodes.is_empty() {
            builder.below(tree, frame, 0, "", &mut children, 0);
        }
        if builder.dropped > 0 {
            children.push(text_node(
                frame,
                format!("… {} more nodes: find them by text", builder.dropped),
            ));
        }
        SnapshotNode {
            role: "page".to_owned(),
            name: String::new(),
            value: None,
            states: Vec::new(),
            backend: tree.nodes.first().and_then(|root| root.backend),
            frame: Arc::clone(frame),
            acts: false,
            number: None,
            children,
        }
    }
}

impl SnapshotBuilder<'_> {
    /// Adds the lines of node `at` to `into`: the node itself, or only its children if the node
    /// shows nothing itself.
    fn below(
        &mut self,
        tree: &AxNodeTree,
        frame: &Arc<str>,
        at: usize,
        above: &str,
        into: &mut Vec<SnapshotNode>,
        depth: usize,
    ) {
        let ax = &tree.nodes[at];
        if self.left == 0 || depth > MAX_DEPTH {
            self.dropped += 1;
            return;
        }
        let role = ax.role();
        if role == "StaticText" || role == "ListMarker" {
            let text = one_line(text_of(ax.name.as_ref()), MAX_TEXT);
            if text.is_empty() || text == above {
                return;
            }
            self.left -= 1;
            // Adjacent text nodes are joined into one line.
            if let Some(last) = into
                .last_mut()
                .filter(|last| last.role == "text" && last.backend.is_none())
                && last.name.chars().count() < MAX_TEXT
            {
                last.name = one_line(&format!("{} {text}", last.name), MAX_TEXT);
                return;
            }
            into.push(text_node(frame, text));
            return;
        }
        let name = one_line(text_of(ax.name.as_ref()), MAX_NAME);
        let clicks = ax
            .backend
            .is_some_and(|node| self.frames.clickable.contains(&node));
        let acts = !ax.ignored && depth > 0 && self.acts(ax, role, clicks);
        let says_nothing = ax.ignored && !clicks
            || depth == 0
            || !acts
                && name.is_empty()
                && matches!(
                    role,
                    "generic"
                        | "none"
                        | "presentation"
                        | ""
                        | "LayoutTable"
                        | "LayoutTableRow"
                        | "LayoutTableCell"
                        | "Section"
                        | "GenericContainer"
                        | "group"
                )
            || role == "RootWebArea";
        let mut children = Vec::new();
        let named = if name.is_empty() {
            above
        } else {
            name.as_str()
        };
        let list = if says_nothing {
            &mut *into
        } else {
            &mut children
        };
        for child in &ax.child_ids {
            if let Some(&child) = tree.by_id.get(child) {
                self.below(tree, frame, child, named, list, depth + 1);
            }
        }
        if let Some((inner, tree)) = ax.backend.and_then(|node| self.frames.others.get(&node)) {
            self.below(tree, inner, 0, "", list, depth + 1);
        }
        if says_nothing {
            return;
        }
        self.left = self.left.saturating_sub(1);
        let mut node = SnapshotNode {
            role: role_word(role, ax.ignored),
            name,
            value: value_of(ax, role),
            states: states(ax),
            backend: ax.backend,
            frame: Arc::clone(frame),
            acts: acts || ax.ignored && clicks,
            number: None,
            children,
        };
        // An element that contains only text uses that text as its name.
        if node.name.is_empty() && node.children.len() == 1 && node.children[0].role == "text" {
            node.name = std::mem::take(&mut node.children[0].name);
            node.children.clear();
        }
        let nothing =
            node.name.is_empty() && node.children.is_empty() && node.value.is_none() && !node.acts;
        if !(nothing
            && matches!(
                role,
                "paragraph" | "list" | "listitem" | "generic" | "image" | "img" | "figure"
            ))
        {
            into.push(node);
        }
    }

    fn acts(&self, ax: &AxNode, role: &str, clicks: bool) -> bool {
        clicks
            || matches!(
                role,
                "button"
                    | "link"
                    | "textbox"
                    | "searchbox"
                    | "combobox"
                    | "listbox"
                    | "option"
                    | "checkbox"
                    | "radio"
                    | "switch"
                    | "slider"
                    | "spinbutton"
                    | "menuitem"
                    | "menuitemcheckbox"
                    | "menuitemradio"
                    | "tab"
                    | "treeitem"
                    | "Iframe"
                    | "IframePresentational"
                    | "DisclosureTriangle"
                    | "ColorWell"
                    | "Date"
                    | "DateTime"
                    | "InputTime"
                    | "PopUpButton"
                    | "ToggleButton"
                    | "MenuListPopup"
                    | "MenuListOption"
                    | "Video"
                    | "Audio"
            )
            || (ax.is(AxPropertyName::Focusable) && role != "RootWebArea")
            || ax
                .property(AxPropertyName::Editable)
                .is_some_and(|value| value.is_string())
                && ax.is(AxPropertyName::Focusable)
    }
}

fn text_node(frame: &Arc<str>, text: String) -> SnapshotNode {
    SnapshotNode {
        role: "text".to_owned(),
        name: text,
        value: None,
        states: Vec::new(),
        backend: None,
        frame: Arc::clone(frame),
        acts: false,
        number: None,
        children: Vec::new(),
    }
}

/// Converts a role to the terms of HTML and ARIA.
fn role_word(role: &str, ignored: bool) -> String {
    match role {
        "Iframe" | "IframePresentational" => "iframe".to_owned(),
        "generic" | "" => "clickable".to_owned(),
        "none" | "presentation" if ignored => "clickable".to_owned(),
        other => {
            let mut word = one_line(other, 40);
            if let Some(first) = word.get_mut(..1) {
                first.make_ascii_lowercase();
            }
            word
        }
    }
}

fn value_of(ax: &AxNode, role: &str) -> Option<String> {
    let value = ax.value.as_ref().map(|value| match &value.value {
        Value::String(text) => one_line(text, MAX_NAME),
        Value::Null => String::new(),
        plain => plain.to_string(),
    })?;
    let is_field = matches!(
        role,
        "textbox" | "searchbox" | "combobox" | "slider" | "spinbutton" | "progressbar" | "meter"
    ) || ax.property(AxPropertyName::Editable).is_some();
    (is_field && !value.is_empty()).then_some(value)
}

fn states(ax: &AxNode) -> Vec<String> {
    let mut states = Vec::new();
    for property in &ax.properties {
        let value = &property.value.value;
        let on = value == true || value == "true";
        let name = || format!("{:?}", property.name).to_lowercase();
        match property.name {
            AxPropertyName::Level => {
                if let Some(level) = value.as_i64() {
                    states.push(format!("level={level}"));
                }
            }
            AxPropertyName::Checked | AxPropertyName::Pressed => {
                if on {
                    states.push(name());
                } else if value == "mixed" {
                    states.push(format!("{}=mixed", name()));
                }
            }
            AxPropertyName::Expanded => {
                states.push(if on { "expanded" } else { "collapsed" }.to_owned());
            }
            AxPropertyName::Invalid if value != "false" && value != false => {
                states.push("invalid".to_owned());
            }
            AxPropertyName::Focused
            | AxPropertyName::Disabled
            | AxPropertyName::Selected
            | AxPropertyName::Required
            | AxPropertyName::Readonly
            | AxPropertyName::Modal
            | AxPropertyName::Busy
                if on =>
            {
                states.push(name());
            }
            _ => {}
        }
    }
    if ax.role() == "RootWebArea" {
        states.clear();
    }
    states
}
