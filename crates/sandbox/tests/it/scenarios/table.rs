//! Scenarios, and how they are run.

use std::{fmt, path::Path};

use haft_sandbox::Mechanism;

use super::{
    stand::{Around, Ground, Stand},
    user,
};

/// Printed by an attempt that got what it must not have; it also stands in every secret.
pub(super) const GOT: &str = "GOT";

/// Where an attempt is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Case {
    pub(super) root: bool,
    pub(super) mechanism: Mechanism,
    pub(super) view: View,
}

/// The profile, in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    ReadOnly,
    Open,
    Proxy,
    Nobody,
    Full,
}

impl Case {
    pub(super) fn reduced(&self) -> bool {
        self.mechanism == Mechanism::Reduced
    }
    pub(super) fn bubblewrap(&self) -> bool {
        self.mechanism == Mechanism::Bubblewrap
    }
    pub(super) fn reduced_root(&self) -> bool {
        self.reduced() && self.root
    }
    pub(super) fn workspace(&self) -> bool {
        matches!(self.view, View::Open | View::Proxy | View::Nobody)
    }
    pub(super) fn reduced_workspace(&self) -> bool {
        self.reduced() && self.workspace()
    }
    pub(super) fn open(&self) -> bool {
        self.view == View::Open
    }
    pub(super) fn anywhere(&self) -> bool {
        true
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let who = if self.root { "root" } else { "user" };
        write!(out, "{who}, {:?}, {:?}", self.mechanism, self.view)
    }
}

/// Is it so there?
type At = fn(&Case) -> bool;

/// An attempt, and where it succeeds.
#[derive(Clone)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) attempt: Attempt,
    happens: Vec<(At, Expected)>,
    unconfined: Unconfined,
}

#[derive(Clone)]
pub(super) enum Attempt {
    Bash(&'static str),
    Python(&'static str),
}

/// What is to come of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    /// Nothing.
    Held,
    /// It succeeds, because of this.
    Happens(&'static str),
    /// That depends on the machine; if it succeeds, then because of this.
    Either(&'static str),
}

/// Does the attempt succeed without a sandbox?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unconfined {
    /// It does, so that failing in a sandbox means something.
    Succeeds,
    /// If root makes it.
    SucceedsForRoot,
    /// If anyone but root makes it.
    SucceedsForUsers,
    /// That depends on the machine.
    Depends,
    /// It is not for a machine that is still needed. Nor is it made where nothing confines.
    NotTried,
}

/// An attempt in bash. It finds `$OUT`, a directory outside, and `$IN`, one in the working directory.
pub(super) fn bash(name: &'static str, text: &'static str) -> Scenario {
    Scenario::new(name, Attempt::Bash(text))
}

/// An attempt in python, with the same names.
pub(super) fn python(name: &'static str, text: &'static str) -> Scenario {
    Scenario::new(name, Attempt::Python(text))
}

impl Scenario {
    fn new(name: &'static str, attempt: Attempt) -> Self {
        Self {
            name,
            attempt,
            happens: Vec::new(),
            unconfined: Unconfined::Succeeds,
        }
    }

    pub(super) fn is_tried(&self, case: &Case) -> bool {
        let can_run = matches!(self.attempt, Attempt::Bash(_)) || has_python();
        can_run && (case.view != View::Full || self.unconfined != Unconfined::NotTried)
    }

    pub(super) fn text(&self) -> &'static str {
        let (Attempt::Bash(text) | Attempt::Python(text)) = self.attempt;
        text
    }

    /// There it does succeed, because of this.
    pub(super) fn happens(mut self, at: At, because: &'static str) -> Self {
        self.happens.push((at, Expected::Happens(because)));
        self
    }

    /// There it may succeed on some machines, because of this.
    pub(super) fn may_happen(mut self, at: At, because: &'static str) -> Self {
        self.happens.push((at, Expected::Either(because)));
        self
    }

    pub(super) fn unconfined(mut self, unconfined: Unconfined) -> Self {
        self.unconfined = unconfined;
        self
    }

    fn expected(&self, case: &Case) -> Expected {
        if case.view != View::Full {
            let hole = self.happens.iter().find(|(at, _)| at(case));
            return hole.map_or(Expected::Held, |(_, expected)| *expected);
        }
        match self.unconfined {
            Unconfined::SucceedsForRoot if !case.root => {}
            Unconfined::SucceedsForUsers if case.root => {}
            Unconfined::Depends | Unconfined::NotTried => {}
            Unconfined::Succeeds | Unconfined::SucceedsForRoot | Unconfined::SucceedsForUsers => {
                return Expected::Happens("nothing confines it");
            }
        }
        Expected::Either("nothing confines it")
    }
}

/// Returns whether attempts in python can be made on this machine.
pub(super) fn has_python() -> bool {
    Path::new("/usr/bin/python3").exists()
}

/// Makes all these attempts everywhere; panics with a list of those that came out otherwise.
/// `test` is the name of the test that asks, for the one that runs it without rights.
///
/// Views that differ by the network alone are alike to attempts that are not about it.
pub(super) async fn check(test: &str, scenarios: &[Scenario], around: Around) {
    if haft_testkit::is_thorough() {
        return check_every_view(test, scenarios, around).await;
    }
    check_views(test, scenarios, around, &[View::ReadOnly, View::Proxy]).await;
}

/// The same for attempts that are about the network.
pub(super) async fn check_every_view(test: &str, scenarios: &[Scenario], around: Around) {
    let views = [View::ReadOnly, View::Open, View::Proxy, View::Nobody];
    check_views(test, scenarios, around, &views).await;
}

async fn check_views(test: &str, scenarios: &[Scenario], around: Around, views: &[View]) {
    if !has_python() {
        haft_testkit::skip("attempts in python in a sandbox: no /usr/bin/python3");
    }
    let second = user::start(test);
    let root = rustix::process::geteuid().is_root();
    let mut ground = Ground::new(scenarios, around);
    let mut wrong = Vec::new();
    for mechanism in [
        Mechanism::Namespaces,
        Mechanism::Bubblewrap,
        Mechanism::Reduced,
    ] {
        for &view in views {
            let case = Case {
                root,
                mechanism,
                view,
            };
            wrong.extend(check_case(&case, scenarios, &mut ground).await);
        }
    }
    let full = Case {
        root,
        mechanism: Mechanism::Namespaces,
        view: View::Full,
    };
    wrong.extend(check_case(&full, scenarios, &mut ground).await);
    wrong.extend(second.and_then(user::Second::finish));
    assert!(
        wrong.is_empty(),
        "{} came out otherwise:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

async fn check_case(case: &Case, scenarios: &[Scenario], ground: &mut Ground) -> Vec<String> {
    let mut stand = Stand::new(case, ground);
    if !stand.stands().await {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    for (scenario, tried) in scenarios.iter().zip(stand.attempt(scenarios).await) {
        let Some((seen, said)) = tried else {
            continue;
        };
        match (scenario.expected(case), seen.is_empty()) {
            (Expected::Held, false) => {
                wrong.push(format!("{case}: {}: {seen:#?}\n{said}", scenario.name));
            }
            (Expected::Happens(because), true) => wrong.push(format!(
                "{case}: {}: does not happen, though: {because}\n{said}",
                scenario.name
            )),
            (Expected::Held, true) | (Expected::Happens(_), false) => {}
            (Expected::Either(_because), _) => {}
        }
    }
    wrong.extend(stand.end().await);
    wrong
}

/// Does this in a sandbox of each kind that works here, with one spot, as root and without rights.
pub(super) async fn everywhere(
    test: &str,
    around: Around,
    views: &[View],
    mut work: impl AsyncFnMut(&mut Stand<'_>),
) {
    let second = user::start(test);
    for mechanism in [
        Mechanism::Namespaces,
        Mechanism::Bubblewrap,
        Mechanism::Reduced,
    ] {
        for &view in views {
            let case = Case {
                root: rustix::process::geteuid().is_root(),
                mechanism,
                view,
            };
            let mut ground = Ground::new(&[bash("one", "")], around);
            let mut stand = Stand::new(&case, &mut ground);
            if !stand.stands().await {
                continue;
            }
            work(&mut stand).await;
            assert_eq!(stand.end().await, Vec::<String>::new());
        }
    }
    if let Some(failed) = second.and_then(user::Second::finish) {
        panic!("{failed}");
    }
}
