//! Questions that are answered by a letter: permissions, plans, and trust in a directory.

use std::path::{Path, PathBuf};

use haft::{ApprovalAnswer, ApprovalKind, ApprovalRequest, contract::rule_offer::OfferKind};
use haft_terminal::{Caret, Key, KeyCode, TextLine, TextStyle, wrap::wrap};

use super::{
    AskAnswer, AskFrame, AskOutcome, AskRows, AskStatus,
    answers::{accept_edits, longest, shortest},
    content,
    edited_line::{EditedLine, LineEdit},
    trials::RuleTrials,
};
use crate::tui::{cards, ui_style::UiStyle};

/// A question that is answered by a letter.
pub(crate) struct ChoiceAsk {
    pub(super) about: AskSubject,
    /// The working directory; paths below it are shown relative to it.
    cwd: PathBuf,
    choices: Vec<AskChoice>,
    chosen: Option<usize>,
    pub(super) editing: Option<LineEdit>,
    pub(super) trials: RuleTrials,
    seen: SeenExtent,
    /// The reason that the last key had no effect.
    pub(super) note: Option<String>,
}

pub(super) enum AskSubject {
    Request(Box<ApprovalRequest>),
    Trust(TrustFacts),
}

/// The consequence of trusting a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustPurpose {
    /// Code from the directory may run.
    Start,
    /// Calls may also work in the directory.
    Add,
    /// The mode `auto` is used although haft cannot enforce sentences of the settings.
    Sentences,
}

/// The content of a question about a directory: what it would run, what adding it permits, or which
/// sentences of the settings are not enforced there.
#[derive(Debug, Clone)]
pub(crate) struct TrustFacts {
    pub(crate) purpose: TrustPurpose,
    pub(crate) directory: String,
    /// Short descriptions of what would run, or of what adding the directory permits, or the sentences.
    pub(crate) things: Vec<String>,
    /// The names and full contents of what would run.
    pub(crate) contents: Vec<(String, String)>,
}

#[derive(Debug, Clone, Copy)]
struct AskChoice {
    letter: char,
    /// The text after the letter. Narrow windows show only the letter.
    label: &'static str,
    action: ChoiceAction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ChoiceAction {
    Once,
    ForNow,
    /// The choice of rules with this index.
    Offer(usize),
    Session,
    No,
    DenyWithReason,
    Change,
    ShowFull,
    GoAcceptEdits,
    Trust,
    Distrust,
}

impl ChoiceAction {
    /// Returns whether the action permits the call, or grants trust.
    fn allows(self) -> bool {
        matches!(
            self,
            Self::Once
                | Self::ForNow
                | Self::Offer(_)
                | Self::Session
                | Self::GoAcceptEdits
                | Self::Trust
        )
    }
}

/// The extent to which the user has seen the question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SeenExtent {
    /// The question was never drawn completely.
    Part,
    /// The region that is being written shows the complete question.
    Drawn,
    Whole,
}

/// The maximum number of content rows of a question while the user types a message. The cursor
/// is then below the question, and if the window becomes too small, all rows above the cursor would
/// move to the scrollback.
const BESIDE_DRAFT: usize = 6;

impl ChoiceAsk {
    pub(super) fn from_request(request: ApprovalRequest, cwd: &Path) -> Self {
        let choice = |letter, label, does| AskChoice {
            letter,
            label,
            action: does,
        };
        let mut choices = Vec::new();
        match request.kind {
            ApprovalKind::Plan => {
                choices.push(choice('y', "go, ask for edits", ChoiceAction::Once));
                choices.push(choice('s', "go, accept edits", ChoiceAction::GoAcceptEdits));
                choices.push(choice('n', "keep planning", ChoiceAction::No));
                choices.push(choice('r', "change..", ChoiceAction::DenyWithReason));
            }
            _ => {
                let offers = request.offers.iter().map(|offer| offer.kind()).enumerate();
                let offers: Vec<AskChoice> = offers
                    .filter_map(|(at, kind)| {
                        let (letter, label) = match kind {
                            OfferKind::AllowRules => return None,
                            OfferKind::Offline => ('o', "without network from now on.."),
                            OfferKind::ReadDomains => ('h', "all reads at its host.."),
                            OfferKind::Wrapper => ('w', "declare the wrapper.."),
                        };
                        Some(choice(letter, label, ChoiceAction::Offer(at)))
                    })
                    .collect();
                let is_first =
                    request.offers.first().map(|offer| offer.kind()) == Some(OfferKind::Offline);
                let (first, others) = offers.split_at(usize::from(is_first).min(offers.len()));
                choices.extend(first);
                choices.push(choice('y', "once", ChoiceAction::Once));
                if cards::has_diff(request.shown()) {
                    choices.push(choice(
                        's',
                        "all edits of this session",
                        ChoiceAction::Session,
                    ));
                }
                let mut rules = request.offers.iter();
                if let Some(at) = rules.position(|offer| offer.kind() == OfferKind::AllowRules) {
                    choices.push(choice('a', "always..", ChoiceAction::Offer(at)));
                }
                choices.extend(others);
                choices.push(choice('n', "no", ChoiceAction::No));
                choices.push(choice('r', "no, because..", ChoiceAction::DenyWithReason));
                if request.asked.is_some() {
                    choices.push(choice('e', "change it", ChoiceAction::Change));
                }
                // After the others, whose numbers stay the same.
                if request.rule_offer().is_some() {
                    choices.push(choice('t', "for now..", ChoiceAction::ForNow));
                }
            }
        }
        choices.push(choice('v', "whole", ChoiceAction::ShowFull));
        Self {
            cwd: cwd.to_path_buf(),
            ..Self::new(AskSubject::Request(Box::new(request)), choices)
        }
    }

    pub(super) fn for_trust(facts: TrustFacts) -> Self {
        let choice = |letter, label, does| AskChoice {
            letter,
            label,
            action: does,
        };
        let choices = match facts.purpose {
            TrustPurpose::Start => vec![
                choice('y', "trust it", ChoiceAction::Trust),
                choice('n', "continue without", ChoiceAction::Distrust),
                choice('v', "contents", ChoiceAction::ShowFull),
            ],
            TrustPurpose::Add => vec![
                choice('y', "add it", ChoiceAction::Trust),
                choice('n', "no", ChoiceAction::Distrust),
            ],
            TrustPurpose::Sentences => vec![
                choice('y', "use auto without them", ChoiceAction::Trust),
                choice('n', "use default", ChoiceAction::Distrust),
            ],
        };
        Self::new(AskSubject::Trust(facts), choices)
    }

    fn new(about: AskSubject, choices: Vec<AskChoice>) -> Self {
        Self {
            about,
            cwd: PathBuf::new(),
            choices,
            chosen: None,
            editing: None,
            trials: RuleTrials::default(),
            seen: SeenExtent::Part,
            note: None,
        }
    }

    pub(super) fn title(&self) -> String {
        match &self.about {
            AskSubject::Request(request) => {
                let card = request.shown();
                let subject = content::subject(request, &self.cwd);
                cards::one_line(&format!("{} {subject}", card.title))
            }
            AskSubject::Trust(facts) => format!("trust {}", facts.directory),
        }
    }

    pub(super) fn is_editing(&self) -> bool {
        self.editing.is_some()
    }

    pub(super) fn was_seen(&mut self) {
        self.seen = SeenExtent::Whole;
        self.note = None;
    }

    /// Records that the region has been written to the screen.
    pub(super) fn was_written(&mut self) {
        if self.seen == SeenExtent::Drawn {
            self.seen = SeenExtent::Whole;
        }
    }

    pub(super) fn paste(&mut self, text: &str) {
        if let Some(line) = &mut self.editing {
            line.editor.insert(text);
        }
    }

    pub(super) fn key(&mut self, key: Key) -> AskOutcome {
        if self.editing.is_some() {
            return self.edit(key);
        }
        let last = self.choices.len().saturating_sub(1);
        match key.code {
            KeyCode::Up | KeyCode::Left => {
                self.chosen = Some(self.chosen.map_or(last, |at| at.saturating_sub(1)));
                return AskOutcome::Stay;
            }
            KeyCode::Down | KeyCode::Right => {
                self.chosen = Some(self.chosen.map_or(0, |at| (at + 1).min(last)));
                return AskOutcome::Stay;
            }
            KeyCode::Enter => {
                return match self.chosen.and_then(|at| self.choices.get(at)) {
                    Some(choice) => self.choose(choice.action),
                    // No option is selected at first, so Enter does nothing.
                    None => AskOutcome::Stay,
                };
            }
            _ => {}
        }
        let Some(letter) = key.typed() else {
            return AskOutcome::Unused;
        };
        let by_number = letter.to_digit(10).and_then(|digit| {
            let at = (digit as usize).checked_sub(1)?;
            self.choices.get(at)
        });
        let by_letter = self.choices.iter().find(|choice| choice.letter == letter);
        match by_letter.or(by_number).map(|choice| choice.action) {
            Some(does) => self.choose(does),
            None => AskOutcome::Unused,
        }
    }

    fn choose(&mut self, does: ChoiceAction) -> AskOutcome {
        if does.allows() && self.seen != SeenExtent::Whole {
            self.note = Some("press v first: not all of it is shown here".to_owned());
            return AskOutcome::Stay;
        }
        self.note = None;
        let approval = |answer| AskOutcome::Answer(AskAnswer::Approval(answer));
        match does {
            ChoiceAction::Once => approval(ApprovalAnswer::Allow),
            ChoiceAction::Session => approval(accept_edits()),
            ChoiceAction::GoAcceptEdits => approval(accept_edits()),
            ChoiceAction::No => approval(ApprovalAnswer::Deny { reason: None }),
            ChoiceAction::Trust => AskOutcome::Answer(match &self.about {
                AskSubject::Trust(facts) if facts.purpose == TrustPurpose::Add => {
                    AskAnswer::AddDirectory(facts.directory.clone())
                }
                _ => AskAnswer::Trust(true),
            }),
            ChoiceAction::Distrust => AskOutcome::Answer(AskAnswer::Trust(false)),
            ChoiceAction::ShowFull => AskOutcome::ShowWhole,
            ChoiceAction::ForNow => self.begin_for_now(),
            ChoiceAction::Offer(offer) => {
                let lifetime = match &self.about {
                    AskSubject::Request(request) => longest(request, offer),
                    AskSubject::Trust(_) => 0,
                };
                self.begin(EditedLine::Rule { offer, lifetime })
            }
            ChoiceAction::DenyWithReason => self.begin(EditedLine::Reason),
            ChoiceAction::Change => {
                let argument = self.main_argument();
                self.begin(EditedLine::Change { argument })
            }
        }
    }

    /// Edits the first allow rules, for the shortest time to begin with.
    fn begin_for_now(&mut self) -> AskOutcome {
        let AskSubject::Request(request) = &self.about else {
            return AskOutcome::Stay;
        };
        let mut offers = request.offers.iter();
        let offer = offers.position(|offer| offer.kind() == OfferKind::AllowRules);
        let offer = offer.unwrap_or_default();
        let lifetime = shortest(request, offer);
        self.begin(EditedLine::Rule { offer, lifetime })
    }

    pub(super) fn rows(&mut self, frame: &AskFrame<'_>, place: &AskStatus) -> AskRows {
        let look = frame.look;
        let mut rows = self.heading(look, place);
        let mut end = self.reasons(look);
        let mut caret = None;
        let choices = self.choice_rows(look, place);
        let line = self.line_rows(look);
        let content = self.content(look);
        let fixed = rows.len() + end.len() + choices.len() + line.rows.len();
        let mut room = frame.room.saturating_sub(fixed);
        if !place.has_focus {
            room = room.min(BESIDE_DRAFT);
        }
        if content.len() <= room {
            rows.extend(content);
            if self.seen == SeenExtent::Part && place.has_focus {
                self.seen = SeenExtent::Drawn;
            }
        } else {
            if self.seen == SeenExtent::Drawn {
                self.seen = SeenExtent::Part;
            }
            let shown = room.saturating_sub(1);
            let more = content.len() - shown;
            rows.extend(content.into_iter().take(shown));
            let key = if place.has_focus {
                "v shows all"
            } else {
                "Tab"
            };
            let text = format!("  {} {more} more rows ({key})", look.ellipsis());
            rows.push(TextLine::styled(&text, look.theme.warning));
        }
        rows.append(&mut end);
        rows.extend(choices);
        if let Some(place) = line.caret {
            caret = Some(Caret {
                row: rows.len() + place.row,
                offset: place.offset,
            });
        }
        rows.extend(line.rows);
        AskRows { rows, caret }
    }

    fn heading(&self, look: &UiStyle, place: &AskStatus) -> Vec<TextLine> {
        let words = match &self.about {
            AskSubject::Request(request) => content::heading(request, &self.cwd),
            AskSubject::Trust(facts) => {
                let directory = crate::show::distinct_line(&facts.directory);
                match facts.purpose {
                    TrustPurpose::Start => format!("Trust {directory}"),
                    TrustPurpose::Add => format!("Add {directory}"),
                    TrustPurpose::Sentences => {
                        "Use the mode auto? haft cannot enforce these sentences of autoMode.hard_deny"
                            .to_owned()
                    }
                }
            }
        };
        let mut line = TextLine::styled("? ", look.theme.warning.bold());
        line.push(&words, TextStyle::new().bold());
        let agent = match &self.about {
            AskSubject::Request(request) => request.agent.as_deref(),
            AskSubject::Trust(_) => None,
        };
        let agent = agent.map(|agent| format!("for agent {}", cards::one_line(agent)));
        let facts: Vec<String> = place.counted().into_iter().chain(agent).collect();
        if !facts.is_empty() {
            line.push(&format!("  {}", facts.join(", ")), look.theme.faint);
        }
        wrap(&line, look.size.row_width())
    }

    /// Returns the rows that must be seen completely before the question can be allowed.
    fn content(&self, look: &UiStyle) -> Vec<TextLine> {
        match &self.about {
            AskSubject::Request(request) => content::rows(request, &self.cwd, look),
            AskSubject::Trust(facts) => {
                let row = |thing: &String| {
                    let thing = crate::show::distinct_line(thing);
                    TextLine::plain(&format!("  {thing}"))
                };
                let rows = facts.things.iter().map(row);
                let rows = rows.flat_map(|row| wrap(&row, look.size.row_width()));
                rows.collect()
            }
        }
    }

    fn reasons(&self, look: &UiStyle) -> Vec<TextLine> {
        match &self.about {
            AskSubject::Request(request) => content::reasons(request, &self.cwd, look),
            AskSubject::Trust(facts) => {
                let text = match facts.purpose {
                    TrustPurpose::Add => return Vec::new(),
                    TrustPurpose::Start => {
                        "  would run here; without trust the session continues and ignores all of it"
                    }
                    TrustPurpose::Sentences => {
                        "  haft enforces permission rules instead, for example Bash(git push *)"
                    }
                };
                wrap(
                    &TextLine::styled(text, look.theme.faint),
                    look.size.row_width(),
                )
            }
        }
    }

    fn choice_rows(&self, look: &UiStyle, place: &AskStatus) -> Vec<TextLine> {
        let is_ready = place.has_focus && place.is_armed && self.editing.is_none();
        let mut rows = Vec::new();
        let mut line = TextLine::plain(" ");
        for (at, choice) in self.choices.iter().enumerate() {
            let mut style = match is_ready {
                true => TextStyle::new(),
                false => look.theme.faint,
            };
            if self.chosen == Some(at) {
                style = style.reverse();
            }
            let text = match look.is_narrow() {
                true => format!("[{}]", choice.letter),
                false => format!("[{}] {}", choice.letter, choice.label),
            };
            if line.width() + 1 + text.len() > look.size.row_width() {
                rows.push(std::mem::replace(&mut line, TextLine::plain(" ")));
            }
            line.push(" ", TextStyle::new());
            line.push(&text, style);
        }
        if !place.has_focus {
            let text = "  Tab to answer";
            if line.width() + text.len() > look.size.row_width() {
                rows.push(std::mem::take(&mut line));
            }
            line.push(text, look.theme.accent);
        }
        rows.push(line);
        if let Some(note) = &self.note {
            rows.push(TextLine::styled(&format!("  {note}"), look.theme.warning));
        }
        rows
    }

    /// Returns the complete question for a full-screen view.
    pub(super) fn full_rows(&self, look: &UiStyle) -> Vec<TextLine> {
        match &self.about {
            AskSubject::Request(request) => {
                let mut rows = vec![TextLine::styled(
                    &content::heading(request, &self.cwd),
                    TextStyle::new().bold(),
                )];
                rows.extend(content::rows(request, &self.cwd, look));
                rows.extend(content::reasons(request, &self.cwd, look));
                rows
            }
            AskSubject::Trust(facts) => {
                let mut rows = Vec::new();
                for (name, text) in &facts.contents {
                    rows.push(TextLine::styled(name, TextStyle::new().bold()));
                    for line in crate::show::distinct(text).lines() {
                        rows.push(TextLine::plain(&format!("  {line}")));
                    }
                }
                rows
            }
        }
    }
}
