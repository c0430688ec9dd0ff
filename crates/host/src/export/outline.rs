//! The outline of an exported session: its entries in order, with their times, for the session and
//! each subagent.
//!
//! The fields are those that the page's script reads (`page/nodes.js`). The outline omits
//! signatures and encrypted data of providers, contents of files before a change, and lines about
//! the session that are not part of the conversation.

use std::collections::{HashMap, VecDeque};

use haft_agent::transcript::history::{SessionHistory, SubagentHistory};
use haft_models::Prices;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{reader, visible::visible};

/// The maximum length of a title made from the first prompt.
const TITLE: usize = 90;

/// The maximum number of reported lines that could not be read.
const MAX_REPAIRS: usize = 12;

#[derive(Debug, Serialize)]
pub(super) struct ExportOutline {
    pub(super) session: OutlineSession,
    /// The first is the main agent.
    pub(super) agents: Vec<OutlineAgent>,
    /// Subagents whose call is not in any transcript.
    pub(super) loose: Vec<usize>,
    pub(super) spent: Vec<OutlineSpent>,
    pub(super) repairs: Vec<String>,
}

#[derive(Debug, Serialize)]
pub(super) struct OutlineSession {
    pub(super) id: String,
    pub(super) title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) branch: Option<String>,
    /// The time of the first entry. Times are in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<u64>,
}

#[derive(Debug, Serialize)]
pub(super) struct OutlineAgent {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) description: String,
    pub(super) replies: Vec<OutlineReply>,
    pub(super) items: Vec<OutlineItem>,
}

/// A reply of the model.
#[derive(Debug, Serialize)]
pub(super) struct OutlineReply {
    pub(super) model: String,
    pub(super) usage: OutlineUsage,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<f64>,
    /// The time of the request, which is that of the preceding entry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) to: Option<u64>,
}

#[derive(Debug, Clone, Copy, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutlineUsage {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_write: u64,
}

/// The usage and cost of one model.
#[derive(Debug, Serialize)]
pub(super) struct OutlineSpent {
    pub(super) model: String,
    #[serde(flatten)]
    pub(super) usage: OutlineUsage,
    /// The cost in USD. None: the price is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(super) struct OutlineItem {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<u64>,
    /// The reply that it is part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reply: Option<usize>,
    #[serde(flatten)]
    pub(super) what: ItemKind,
}

#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum ItemKind {
    User {
        author: &'static str,
        text: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        media: Vec<OutlineMedia>,
    },
    Text {
        text: String,
    },
    Thinking {
        text: String,
    },
    Call(Box<OutlineCall>),
    Compacted {
        trigger: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        tokens: Option<u64>,
    },
    Failed {
        text: String,
    },
    /// A block whose type alone is shown.
    Other {
        text: String,
    },
}

#[derive(Debug, Default, Serialize)]
pub(super) struct OutlineCall {
    pub(super) name: String,
    pub(super) input: Value,
    /// The start of its tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) started: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<u64>,
    /// The time spent waiting for the user, in milliseconds.
    #[serde(skip_serializing_if = "is_zero")]
    pub(super) waited: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) error: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) answered: bool,
    pub(super) text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) media: Vec<OutlineMedia>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) patches: Vec<OutlinePatch>,
    /// The subagents that it launched.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) agents: Vec<usize>,
    #[serde(skip)]
    pub(super) id: String,
}

#[derive(Debug, Serialize)]
pub(super) struct OutlineMedia {
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The data in base 64; missing if the media is not shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<String>,
}

/// The changes of a file by a call.
#[derive(Debug, Serialize)]
pub(super) struct OutlinePatch {
    pub(super) file: String,
    pub(super) hunks: Vec<OutlineHunk>,
}

/// A hunk of changed lines, in the format of the file tools.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OutlineHunk {
    #[serde(default)]
    pub(super) old_start: u64,
    #[serde(default)]
    pub(super) new_start: u64,
    /// The lines, each prefixed with a space, `+` or `-`.
    pub(super) lines: Vec<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl ExportOutline {
    pub(super) fn from_history(
        id: &str,
        history: SessionHistory,
        subagents: Vec<SubagentHistory>,
        prices: &Prices,
    ) -> Self {
        let mut repairs: Vec<String> = history.repairs.iter().map(|one| visible(one)).collect();
        let said = |text: Option<&String>| text.map(|text| visible(text));
        let mut session = OutlineSession {
            id: visible(id),
            title: said(history.title.as_ref()).unwrap_or_default(),
            cwd: said(history.cwd.as_ref()),
            branch: said(history.branch.as_ref()),
            from: None,
            to: None,
        };
        let mut agents = vec![reader::read(String::new(), String::new(), history, prices)];
        let mut launched_by = vec![String::new()];
        for one in subagents {
            launched_by.push(one.tool_use_id);
            repairs.extend(one.history.repairs.iter().map(|what| visible(what)));
            let description = visible(&one.description);
            agents.push(reader::read(
                visible(&one.kind),
                description,
                one.history,
                prices,
            ));
        }
        let more = repairs.len().saturating_sub(MAX_REPAIRS);
        if more > 0 {
            repairs.truncate(MAX_REPAIRS);
            repairs.push(format!("… and {more} more"));
        }
        let loose = link(&mut agents, &launched_by);
        let times = || agents.iter().flat_map(OutlineAgent::times);
        (session.from, session.to) = (times().min(), times().max());
        if session.title.is_empty() {
            session.title = agents[0].first_prompt().unwrap_or_else(|| id.to_owned());
        }
        Self {
            spent: spent(&agents, prices),
            session,
            agents,
            loose,
            repairs,
        }
    }
}

/// Assigns subagents to the calls that launched them, and returns those without a call. In a
/// hostile transcript, an id may occur several times, even inside the subagent that it launches.
/// Each subagent is assigned only once.
fn link(agents: &mut [OutlineAgent], launched_by: &[String]) -> Vec<usize> {
    let mut by_call: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (agent, id) in launched_by.iter().enumerate().skip(1) {
        by_call.entry(id).or_default().push_back(agent);
    }
    let mut is_placed = vec![false; agents.len()];
    let mut loose = Vec::new();
    for root in 0..agents.len() {
        if is_placed[root] {
            continue;
        }
        is_placed[root] = true;
        if root > 0 {
            loose.push(root);
        }
        let mut waiting = VecDeque::from([root]);
        while let Some(agent) = waiting.pop_front() {
            for item in &mut agents[agent].items {
                let ItemKind::Call(call) = &mut item.what else {
                    continue;
                };
                for child in by_call.remove(call.id.as_str()).unwrap_or_default() {
                    if !std::mem::replace(&mut is_placed[child], true) {
                        call.agents.push(child);
                        waiting.push_back(child);
                    }
                }
            }
        }
    }
    loose
}

fn spent(agents: &[OutlineAgent], prices: &Prices) -> Vec<OutlineSpent> {
    let mut spent: Vec<OutlineSpent> = Vec::new();
    for reply in agents.iter().flat_map(|agent| &agent.replies) {
        let at = spent.iter().position(|one| one.model == reply.model);
        let at = at.unwrap_or_else(|| {
            spent.push(OutlineSpent {
                model: reply.model.clone(),
                usage: OutlineUsage::default(),
                cost: prices.price(&reply.model).map(|_| 0.0),
            });
            spent.len() - 1
        });
        let one = &mut spent[at];
        one.usage.input += reply.usage.input;
        one.usage.output += reply.usage.output;
        one.usage.cache_read += reply.usage.cache_read;
        one.usage.cache_write += reply.usage.cache_write;
        if let (Some(sum), Some(cost)) = (&mut one.cost, reply.cost) {
            *sum += cost;
        }
    }
    spent
}

impl OutlineAgent {
    fn times(&self) -> impl Iterator<Item = u64> {
        let ends = self.items.iter().filter_map(|item| match &item.what {
            ItemKind::Call(call) => call.ended,
            _ => None,
        });
        self.items.iter().filter_map(|item| item.time).chain(ends)
    }

    fn first_prompt(&self) -> Option<String> {
        self.items.iter().find_map(|item| match &item.what {
            ItemKind::User { author, text, .. } if *author == "person" => {
                let words: Vec<&str> = text.split_whitespace().collect();
                let words = words.join(" ");
                let short: String = words.chars().take(TITLE).collect();
                let rest = if short.len() < words.len() { "…" } else { "" };
                Some(short + rest).filter(|title| !title.is_empty())
            }
            _ => None,
        })
    }
}
