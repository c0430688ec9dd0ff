//! Requests of the stateless revision that wait for an answer of the client's.
//!
//! There the server asks nothing by itself: a request that needs an answer is itself answered by what is asked,
//! and made again with the answers. Here the work on it goes on in between, in a task of its own, so that a
//! service asks in the same way whatever the revision.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use haft_contract::BoxFuture;
use serde_json::{Map, Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};

use super::{
    service::{ClientAskError, McpService, RequestChannel, RequestContext, ServiceAnswer},
    session::ReplyChannel,
};
use crate::{RpcError, RpcMessage, message::code};

/// More do not wait at once.
const MOST_PARKED: usize = 64;
/// So long a client may take to come back.
const PATIENCE: Duration = Duration::from_secs(300);
/// So many questions of one request wait to be passed on.
const WAITING_ASKS: usize = 16;

/// The requests that wait.
#[derive(Default)]
pub(super) struct ParkedRequests(Mutex<HashMap<String, Parked>>);

struct Parked {
    about: String,
    running: Running,
    /// What was asked, by the keys under which it was.
    asked: Vec<(String, Ask)>,
}

/// A request that is worked on. Dropped, it ends.
struct Running {
    task: JoinHandle<ServiceAnswer>,
    asks: mpsc::Receiver<Ask>,
    way: Arc<Parking>,
    asked: usize,
}

struct Ask {
    name: Option<String>,
    method: String,
    params: Value,
    answer: oneshot::Sender<Value>,
}

/// The way back to the client of a request that may be made again.
struct Parking {
    asks: mpsc::Sender<Ask>,
    /// Where messages go that belong to the request at the moment.
    to: Mutex<Arc<dyn ReplyChannel>>,
}

impl RequestChannel for Parking {
    fn notify(&self, method: &str, params: Value) {
        let to = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        to.try_send(RpcMessage::notification(method, params));
    }

    fn ask(
        &self,
        name: Option<&str>,
        method: &str,
        params: Value,
    ) -> BoxFuture<'_, Result<Value, ClientAskError>> {
        let (answer, answered) = oneshot::channel();
        let ask = Ask {
            name: name.map(str::to_owned),
            method: method.to_owned(),
            params,
            answer,
        };
        Box::pin(async move {
            self.asks
                .send(ask)
                .await
                .map_err(|_| ClientAskError::Gone)?;
            answered.await.map_err(|_| ClientAskError::Gone)
        })
    }
}

impl ParkedRequests {
    /// Works on a request until it is done, or has something to ask.
    pub(super) async fn answer(
        self: &Arc<Self>,
        service: &Arc<dyn McpService>,
        (method, params): (&str, Value),
        cx: RequestContext,
        to: &Arc<dyn ReplyChannel>,
    ) -> ServiceAnswer {
        let about = about(method, &params);
        let mut running = match params["requestState"].as_str() {
            None => Running::start(service, method, params, cx, to),
            Some(state) => {
                let parked = self.take(state, &about)?;
                parked.way().set(to);
                match parked.answered(&params["inputResponses"]) {
                    Ok(running) => running,
                    Err(parked) => return self.park(*parked),
                }
            }
        };
        let asks = tokio::select! {
            biased;
            done = &mut running.task => return ended(done),
            Some(first) = running.asks.recv() => running.with_others(first).await,
        };
        let asked = running.keyed(asks);
        self.park(Parked {
            about,
            running,
            asked,
        })
    }

    /// Keeps a request until it is made again, and says what it asks.
    fn park(self: &Arc<Self>, parked: Parked) -> ServiceAnswer {
        let state = random_name();
        let asked = parked.asked.iter();
        let asked: Map<String, Value> = asked
            .map(|(key, ask)| {
                let ask = json!({"method": ask.method, "params": ask.params});
                (key.clone(), ask)
            })
            .collect();
        {
            let mut all = self.all();
            if all.len() >= MOST_PARKED {
                let why = "too many requests wait for answers";
                return Err(RpcError::new(code::INTERNAL, why));
            }
            all.insert(state.clone(), parked);
        }
        let (parked, forgotten) = (Arc::downgrade(self), state.clone());
        haft_contract::spawn_boxed(async move {
            tokio::time::sleep(PATIENCE).await;
            if let Some(parked) = parked.upgrade() {
                parked.all().remove(&forgotten);
            }
        });
        Ok(json!({
            "resultType": "input_required",
            "inputRequests": asked,
            "requestState": state,
        }))
    }

    fn take(&self, state: &str, about: &str) -> Result<Parked, RpcError> {
        let mut all = self.all();
        if all.get(state).is_some_and(|parked| parked.about != about) {
            let why = "this `requestState` belongs to another request";
            return Err(RpcError::invalid_params(why));
        }
        all.remove(state).ok_or_else(|| {
            RpcError::invalid_params("this `requestState` is not known, or no longer: ask again")
        })
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, Parked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Parked {
    fn way(&self) -> &Arc<Parking> {
        &self.running.way
    }

    /// Passes the answers on. An error: some are missing, and are asked for again.
    fn answered(mut self, responses: &Value) -> Result<Running, Box<Self>> {
        let is_missing =
            |(key, _): &(String, Ask)| !responses.get(key).is_some_and(Value::is_object);
        if self.asked.iter().any(is_missing) {
            return Err(Box::new(self));
        }
        for (key, ask) in self.asked.drain(..) {
            let _ = ask.answer.send(responses[&key].clone()); // it may have ended
        }
        Ok(self.running)
    }
}

impl Parking {
    fn set(&self, to: &Arc<dyn ReplyChannel>) {
        let mut current = self.to.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::clone(to);
    }
}

impl Running {
    fn start(
        service: &Arc<dyn McpService>,
        method: &str,
        params: Value,
        mut cx: RequestContext,
        to: &Arc<dyn ReplyChannel>,
    ) -> Self {
        let (sender, asks) = mpsc::channel(WAITING_ASKS);
        let way = Arc::new(Parking {
            asks: sender,
            to: Mutex::new(Arc::clone(to)),
        });
        cx.channel = Arc::clone(&way) as _;
        let (service, method) = (Arc::clone(service), method.to_owned());
        let task =
            haft_contract::spawn_boxed(async move { service.request(&method, params, &cx).await });
        Self {
            task,
            asks,
            way,
            asked: 0,
        }
    }

    /// What is asked at the same time goes together.
    async fn with_others(&mut self, first: Ask) -> Vec<Ask> {
        let mut asks = vec![first];
        tokio::task::yield_now().await;
        while let Ok(ask) = self.asks.try_recv() {
            asks.push(ask);
        }
        asks
    }

    fn keyed(&mut self, asks: Vec<Ask>) -> Vec<(String, Ask)> {
        let keyed = asks.into_iter().map(|ask| {
            self.asked += 1;
            let name = ask.name.clone();
            let name = name.unwrap_or_else(|| format!("question-{}", self.asked));
            (name, ask)
        });
        keyed.collect()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn ended(done: Result<ServiceAnswer, tokio::task::JoinError>) -> ServiceAnswer {
    done.unwrap_or_else(|error| Err(RpcError::new(code::INTERNAL, error.to_string())))
}

/// What a request is about: it is the same one that is made again.
fn about(method: &str, params: &Value) -> String {
    let what = params.get("name").or_else(|| params.get("uri"));
    let what = what.and_then(Value::as_str).unwrap_or_default();
    format!("{method} {what}")
}

/// A name that no one can guess.
pub(super) fn random_name() -> String {
    let mut bytes = [0; 16];
    getrandom::getrandom(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
