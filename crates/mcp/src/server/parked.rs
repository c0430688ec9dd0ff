//! Requests of the stateless revision that wait for an answer of the client.
//!
//! In this revision the server sends no requests. A request that needs input is answered with a
//! list of input requests, and the client sends it again with the answers. In between, the work on
//! the request continues in its own task, so that a service can ask the client in the same way in
//! every revision.

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
    service::{ClientRequestError, McpService, RequestChannel, RequestContext, ServiceAnswer},
    session::ReplyChannel,
};
use crate::{RpcError, RpcMessage, message::code};

/// The maximum number of parked requests.
const MAX_PARKED: usize = 64;
/// The time a client may take to send a request again.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The maximum number of input requests of one request that wait to be sent.
const WAITING_ASKS: usize = 16;

/// The parked requests.
#[derive(Default)]
pub(super) struct ParkedRequests(Mutex<HashMap<String, ParkedRequest>>);

struct ParkedRequest {
    about: String,
    running: RunningRequest,
    /// The input requests that were sent, by their keys.
    asked: Vec<(String, ClientQuestion)>,
}

/// A request in progress. Dropping it ends the work.
struct RunningRequest {
    task: JoinHandle<ServiceAnswer>,
    asks: mpsc::Receiver<ClientQuestion>,
    channel: Arc<ParkingChannel>,
    asked: usize,
}

struct ClientQuestion {
    name: Option<String>,
    method: String,
    params: Value,
    answer: oneshot::Sender<Value>,
}

/// The channel to the client of a request that may be sent again.
struct ParkingChannel {
    asks: mpsc::Sender<ClientQuestion>,
    /// The current target for messages that belong to the request.
    target: Mutex<Arc<dyn ReplyChannel>>,
}

impl RequestChannel for ParkingChannel {
    fn notify(&self, method: &str, params: Value) {
        let to = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        to.try_send(RpcMessage::notification(method, params));
    }

    fn ask(
        &self,
        name: Option<&str>,
        method: &str,
        params: Value,
    ) -> BoxFuture<'_, Result<Value, ClientRequestError>> {
        let (answer, answered) = oneshot::channel();
        let ask = ClientQuestion {
            name: name.map(str::to_owned),
            method: method.to_owned(),
            params,
            answer,
        };
        Box::pin(async move {
            self.asks
                .send(ask)
                .await
                .map_err(|_| ClientRequestError::Gone)?;
            answered.await.map_err(|_| ClientRequestError::Gone)
        })
    }
}

impl ParkedRequests {
    /// Works on a request until it is finished or requests input.
    pub(super) async fn answer(
        self: &Arc<Self>,
        service: &Arc<dyn McpService>,
        (method, params): (&str, Value),
        cx: RequestContext,
        to: &Arc<dyn ReplyChannel>,
    ) -> ServiceAnswer {
        let about = about(method, &params);
        let mut running = match params["requestState"].as_str() {
            None => RunningRequest::start(service, method, params, cx, to),
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
        self.park(ParkedRequest {
            about,
            running,
            asked,
        })
    }

    /// Stores a request until it is sent again, and returns its input requests.
    fn park(self: &Arc<Self>, parked: ParkedRequest) -> ServiceAnswer {
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
            if all.len() >= MAX_PARKED {
                let why = "too many requests wait for answers";
                return Err(RpcError::new(code::INTERNAL, why));
            }
            all.insert(state.clone(), parked);
        }
        let (parked, forgotten) = (Arc::downgrade(self), state.clone());
        haft_contract::spawn_boxed(async move {
            tokio::time::sleep(TIMEOUT).await;
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

    fn take(&self, state: &str, about: &str) -> Result<ParkedRequest, RpcError> {
        let mut all = self.all();
        if all.get(state).is_some_and(|parked| parked.about != about) {
            let why = "this `requestState` belongs to another request";
            return Err(RpcError::invalid_params(why));
        }
        all.remove(state).ok_or_else(|| {
            RpcError::invalid_params(
                "this `requestState` is unknown or has expired: send the request again",
            )
        })
    }

    fn all(&self) -> MutexGuard<'_, HashMap<String, ParkedRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ParkedRequest {
    fn way(&self) -> &Arc<ParkingChannel> {
        &self.running.channel
    }

    /// Passes the answers on. Returns the parked request as an error if answers are missing; they
    /// are requested again.
    fn answered(mut self, responses: &Value) -> Result<RunningRequest, Box<Self>> {
        let is_missing =
            |(key, _): &(String, ClientQuestion)| !responses.get(key).is_some_and(Value::is_object);
        if self.asked.iter().any(is_missing) {
            return Err(Box::new(self));
        }
        for (key, ask) in self.asked.drain(..) {
            let _ = ask.answer.send(responses[&key].clone()); // the receiver may have ended
        }
        Ok(self.running)
    }
}

impl ParkingChannel {
    fn set(&self, to: &Arc<dyn ReplyChannel>) {
        let mut current = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        *current = Arc::clone(to);
    }
}

impl RunningRequest {
    fn start(
        service: &Arc<dyn McpService>,
        method: &str,
        params: Value,
        mut cx: RequestContext,
        to: &Arc<dyn ReplyChannel>,
    ) -> Self {
        let (sender, asks) = mpsc::channel(WAITING_ASKS);
        let channel = Arc::new(ParkingChannel {
            asks: sender,
            target: Mutex::new(Arc::clone(to)),
        });
        cx.channel = Arc::clone(&channel) as _;
        let (service, method) = (Arc::clone(service), method.to_owned());
        let task =
            haft_contract::spawn_boxed(async move { service.request(&method, params, &cx).await });
        Self {
            task,
            asks,
            channel,
            asked: 0,
        }
    }

    /// Combines input requests that are made at the same time.
    async fn with_others(&mut self, first: ClientQuestion) -> Vec<ClientQuestion> {
        let mut asks = vec![first];
        tokio::task::yield_now().await;
        while let Ok(ask) = self.asks.try_recv() {
            asks.push(ask);
        }
        asks
    }

    fn keyed(&mut self, asks: Vec<ClientQuestion>) -> Vec<(String, ClientQuestion)> {
        let keyed = asks.into_iter().map(|ask| {
            self.asked += 1;
            let name = ask.name.clone();
            let name = name.unwrap_or_else(|| format!("question-{}", self.asked));
            (name, ask)
        });
        keyed.collect()
    }
}

impl Drop for RunningRequest {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn ended(done: Result<ServiceAnswer, tokio::task::JoinError>) -> ServiceAnswer {
    done.unwrap_or_else(|error| Err(RpcError::new(code::INTERNAL, error.to_string())))
}

/// Returns a description that identifies a request when it is sent again.
fn about(method: &str, params: &Value) -> String {
    let what = params.get("name").or_else(|| params.get("uri"));
    let what = what.and_then(Value::as_str).unwrap_or_default();
    format!("{method} {what}")
}

/// Returns a random name that cannot be guessed.
pub(super) fn random_name() -> String {
    let mut bytes = [0; 16];
    getrandom::getrandom(&mut bytes).expect("the system has random numbers");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
