//! Questions and notices before the first session: trust in the directory, and a missing API key.

use haft_host::{DirectoryFacts, KeyReport, TrustReport};
use haft_terminal::HistoryItem;

use super::{
    app::App,
    ask::{TrustFacts, TrustPurpose},
    reply,
};

/// Returns the facts for the trust question, or `None` if nothing needs trust.
pub(crate) fn trust_facts(report: &TrustReport) -> Option<TrustFacts> {
    if report.is_trusted || report.things.is_empty() {
        return None;
    }
    let mut things: Vec<String> = report
        .things
        .iter()
        .map(|thing| thing.name.clone())
        .collect();
    for change in &report.changed {
        let mut lines = change.lines();
        let first = lines.next().unwrap_or_default();
        things.push(format!("since then: {first}"));
        things.extend(lines.map(|line| format!("  {line}")));
    }
    let contents = report.things.iter();
    let contents = contents.map(|thing| (thing.name.clone(), thing.contents.clone()));
    Some(TrustFacts {
        purpose: TrustPurpose::Start,
        directory: report.directory.display().to_string(),
        things,
        contents: contents.collect(),
    })
}

/// Returns the facts for the question whether to use the mode `auto` although haft cannot enforce these
/// sentences of the settings.
pub(crate) fn sentence_facts(sentences: &[String]) -> TrustFacts {
    TrustFacts {
        purpose: TrustPurpose::Sentences,
        directory: String::new(),
        things: sentences.to_vec(),
        contents: Vec::new(),
    }
}

/// Returns the facts for the question whether to add another directory.
pub(crate) fn directory_facts(facts: &DirectoryFacts) -> TrustFacts {
    TrustFacts {
        purpose: TrustPurpose::Add,
        directory: facts.path.display().to_string(),
        things: facts.consequences(),
        contents: Vec::new(),
    }
}

impl App {
    /// Prints that no API key was found: the places that were checked, and alternatives without a
    /// key.
    pub(super) fn no_key(&mut self, report: &KeyReport) {
        let names: Vec<&str> = report.looked_at.iter().map(|place| &*place.name).collect();
        let lines = [
            format!("! no key for {}", report.base_url),
            format!("  checked: {}", names.join(", ")),
            "  set one of them, or store one with `haft login`".to_owned(),
            "  your own server: haft --base-url http://localhost:11434/v1".to_owned(),
            "  without a key: haft demo".to_owned(),
        ];
        let items: Vec<HistoryItem> = lines
            .iter()
            .map(|line| reply::warning(line, &self.look))
            .collect();
        self.print(items);
    }
}
