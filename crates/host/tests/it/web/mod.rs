//! WebFetch against servers on this machine that play every bad case; WebSearch against those that search.
//!
//! - `pages`: what comes of answers; `places`: where it goes and where not; `readers`: small models and searches

mod pages;
mod places;
mod readers;

use std::{
    collections::HashMap,
    io::{self, Read, Write},
    net::{IpAddr, TcpListener},
    path::PathBuf,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use haft_contract::{
    ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CancellationToken, PermissionMode,
    SmallModel, WebFetcher, WebQuery, WebSearchBackend, WebSearchResult, WebSearchResults,
    WebSearcher,
};
use haft_engine::{
    CallResult,
    permissions::{List, PatternBases, RuleSet, RuleSource, SettingsScope},
};
use haft_host::Haft;
use haft_models::{HttpOptions, WebClient};
use haft_testkit::{
    TempProject,
    http::{HttpFake, HttpReply, header},
};
use haft_tools::{
    WebLimits, WebSession,
    web_resolver::{GateFuture, NameResolver},
};
use serde_json::{Value, json};

use crate::rig::in_time;

/// Names that a test has made up, each with what it stands for, question by question.
#[derive(Default)]
struct MadeUp {
    names: HashMap<&'static str, Vec<Vec<IpAddr>>>,
    asked: Mutex<Vec<String>>,
}

impl NameResolver for MadeUp {
    fn resolve<'a>(&'a self, name: &'a str) -> GateFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let mut asked = self.asked.lock().unwrap();
            let times = asked.iter().filter(|one| *one == name).count();
            asked.push(name.to_owned());
            let answers = self.names.get(name).ok_or(io::ErrorKind::NotFound)?;
            Ok(answers[times.min(answers.len() - 1)].clone())
        })
    }
}

/// Someone who always says the same.
struct Person {
    says: ApprovalAnswer,
    asked: Mutex<Vec<String>>,
}

impl Approver for Person {
    fn ask(&self, request: ApprovalRequest) -> BoxFuture<'_, ApprovalAnswer> {
        self.asked.lock().unwrap().push(request.reason);
        Box::pin(async { self.says.clone() })
    }
}

/// A session with the web.
struct Web {
    project: TempProject,
    allowed: Vec<&'static str>,
    denied: Vec<&'static str>,
    mode: PermissionMode,
    limits: WebLimits,
    names: Arc<MadeUp>,
    person: Option<Arc<Person>>,
    small: Option<Arc<dyn SmallModel>>,
    searcher: Option<Arc<WebSearcher>>,
    options: HttpOptions,
}

impl Web {
    fn new() -> Self {
        Self {
            project: TempProject::new([]),
            allowed: vec!["WebFetch(domain:127.0.0.1)"],
            denied: Vec::new(),
            mode: PermissionMode::Default,
            limits: WebLimits::default(),
            names: Arc::default(),
            person: None,
            small: None,
            searcher: None,
            options: HttpOptions {
                proxies: false,
                ..HttpOptions::default()
            },
        }
    }

    fn names<const N: usize>(mut self, names: [(&'static str, &[&[&str]]); N]) -> Self {
        let read = |answer: &&[&str]| answer.iter().map(|one| one.parse().unwrap()).collect();
        let names = names.map(|(name, answers)| (name, answers.iter().map(read).collect()));
        self.names = Arc::new(MadeUp {
            names: names.into_iter().collect(),
            asked: Mutex::default(),
        });
        self
    }

    fn allowing(mut self, rules: &[&'static str]) -> Self {
        self.allowed = rules.to_vec();
        self
    }

    fn folder(&self) -> PathBuf {
        self.project.path("session")
    }

    async fn session(&self) -> Haft {
        let mut rules = RuleSet::default();
        let root = self.project.root();
        let bases = PatternBases {
            home: root.to_path_buf(),
            slash: root.to_path_buf(),
            cwd: root.to_path_buf(),
        };
        let lists = [(List::Allow, &self.allowed), (List::Deny, &self.denied)];
        for (list, texts) in lists {
            for text in texts {
                let source = RuleSource::from_scope(SettingsScope::User);
                rules.add(list, text, source, &bases).unwrap();
            }
        }
        let client: Arc<dyn WebFetcher> = Arc::new(WebClient::new(self.options.clone()));
        let kept = WebSession::new(self.folder().join("tool-results"), self.limits)
            .with_resolver(Arc::clone(&self.names) as _);
        let mut builder = Haft::builder(root)
            .session_folder(self.folder())
            .permission_mode(self.mode)
            .rules(rules)
            .service(Arc::new(client))
            .service(Arc::new(kept));
        if let Some(person) = &self.person {
            builder = builder.approver(Arc::clone(person) as _);
        }
        if let Some(small) = &self.small {
            builder = builder.service(Arc::new(Arc::clone(small)));
        }
        if let Some(searcher) = &self.searcher {
            builder = builder.service(Arc::clone(searcher));
        }
        builder.build().await.unwrap()
    }

    async fn fetch(&self, url: &str) -> CallResult {
        fetch(&mut self.session().await, url).await
    }
}

async fn fetch(haft: &mut Haft, url: &str) -> CallResult {
    let input = json!({"url": url, "prompt": "What does it say?"});
    in_time(haft.call("WebFetch", input)).await
}

fn person(says: ApprovalAnswer) -> Option<Arc<Person>> {
    Some(Arc::new(Person {
        says,
        asked: Mutex::default(),
    }))
}

fn html(body: &str) -> HttpReply {
    HttpReply::new(200, "text/html", body)
}
