//! Sends alerts to a webhook, from a separate task. Calls do not wait for it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use tokio::{
    sync::Notify,
    task::JoinHandle,
    time::{sleep, timeout},
};
use toolgate_config::model::Webhook;
use toolgate_egress::{BodyHolds, Egress, EgressRules, Redirects, Request, parse_url};
use toolgate_gate::{Finished, Observer};

use crate::{OpenError, journal::FileJournal};

/// Posts the alerts of calls and workers, and passes every finished call on to the next observer.
pub struct Alerts {
    queue: Arc<AlertQueue>,
    task: JoinHandle<()>,
    next: Option<Arc<dyn Observer>>,
}

/// Alerts that are neither delivered nor recorded as lost, oldest first.
struct AlertQueue {
    waiting: Mutex<PendingAlerts>,
    came: Notify,
    journal: FileJournal,
}

/// Each alert has a number. While one is being posted, the gateway may stop, and settle this alert and all later ones.
#[derive(Default)]
struct PendingAlerts {
    alerts: VecDeque<(u64, Value)>,
    next: u64,
}

impl Alerts {
    /// Needs a Tokio runtime. The task ends when this value is dropped.
    pub fn start(
        webhook: &Webhook,
        egress: &Egress,
        journal: FileJournal,
        next: Option<Arc<dyn Observer>>,
    ) -> Result<Self, OpenError> {
        let target = WebhookTarget::of(webhook)?;
        let queue = Arc::new(AlertQueue { waiting: Mutex::default(), came: Notify::new(), journal });
        let task = tokio::spawn(post_all(target, egress.clone(), Arc::clone(&queue)));
        Ok(Self { queue, task, next })
    }

    /// Adds an alert that belongs to no call. `entry` is its journal record.
    pub fn raise(&self, entry: &Value) {
        let mut alert = entry.clone();
        if let Some(fields) = alert.as_object_mut() {
            fields.insert("timestampMs".to_owned(), milliseconds(SystemTime::now()).into());
        }
        self.queue.add(alert);
    }

    /// Waits a few seconds for the webhook to accept the pending alerts.
    pub async fn deliver(&self) {
        let delivered = async {
            while self.queue.first().is_some() {
                sleep(A_MOMENT).await;
            }
        };
        // `give_up` records the alerts that are left.
        let _ = timeout(LAST_DELIVERY, delivered).await;
    }

    /// Stops the delivery, and records the alerts that are left.
    pub fn give_up(&self) {
        // The task continues to its next await point.
        self.task.abort();
        while let Some(alert) = self.queue.take() {
            not_delivered(&self.queue.journal, &alert, "the gateway stopped before the webhook accepted it");
        }
    }
}

impl Drop for Alerts {
    fn drop(&mut self) {
        self.give_up();
    }
}

impl AlertQueue {
    fn add(&self, alert: Value) {
        let mut waiting = self.waiting();
        if waiting.alerts.len() < MOST_WAITING {
            let number = waiting.next;
            waiting.next = number.wrapping_add(1);
            waiting.alerts.push_back((number, alert));
            drop(waiting);
            self.came.notify_one();
        } else {
            drop(waiting);
            // A slow webhook misses alerts. The journal has all of them.
            not_delivered(&self.journal, &alert, "too many alerts are waiting for the webhook");
        }
    }

    fn first(&self) -> Option<(u64, Value)> {
        self.waiting().alerts.front().cloned()
    }

    fn take(&self) -> Option<Value> {
        self.waiting().alerts.pop_front().map(|(_, alert)| alert)
    }

    /// Removes a posted alert. Returns `false` if it was already removed, because the gateway stopped.
    fn settle(&self, number: u64) -> bool {
        let mut waiting = self.waiting();
        let is_there = waiting.alerts.front().is_some_and(|(first, _)| *first == number);
        if is_there {
            waiting.alerts.pop_front();
        }
        is_there
    }

    fn waiting(&self) -> MutexGuard<'_, PendingAlerts> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Alerts {
    fn finished(&self, call: &Finished<'_>) {
        if !call.record.alerts.is_empty() {
            self.queue.add(message(call));
        }
        if let Some(next) = &self.next {
            next.finished(call);
        }
    }
}

/// Contains no arguments. Readers find the call in the journal by its id.
fn message(call: &Finished<'_>) -> Value {
    let record = call.record;
    json!({
        "kind": "alert",
        "callId": record.call_id,
        "caller": record.caller.sub,
        "tool": record.tool.get("name"),
        "alerts": record.alerts,
        "outcome": record.outcome,
        "reason": record.reason,
        "timestampMs": milliseconds(call.begun),
    })
}

/// The configured address, and the egress rules that allow only it.
struct WebhookTarget {
    url: String,
    rules: EgressRules,
    token: Option<String>,
}

impl WebhookTarget {
    fn of(webhook: &Webhook) -> Result<Self, OpenError> {
        let invalid = |problem: String| OpenError { part: "audit.webhook", problem };
        let url = parse_url(&webhook.url).map_err(|error| invalid(error.to_string()))?;
        let rules = EgressRules::only(&url);
        rules.judge_host(&url).map_err(|error| invalid(error.to_string()))?;
        let token = webhook.token_env.as_ref().map(|name| {
            std::env::var(name).map_err(|_| invalid(format!("the environment variable `{name}` is not set")))
        });
        Ok(Self { url: url.to_string(), rules, token: token.transpose()? })
    }

    fn request(&self, alert: &Value) -> Request {
        let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
        headers
            .extend(self.token.as_ref().map(|token| ("authorization".to_owned(), format!("Bearer {token}"))));
        Request {
            method: "POST".to_owned(),
            headers,
            body: alert.to_string().into(),
            redirects: Redirects::Error,
            sensitive_headers: vec!["authorization".to_owned()],
            body_holds: BodyHolds::Data,
            ..Request::get(self.url.clone())
        }
    }
}

/// Posts the alerts one after another. Each stays in the queue until it is settled, so none is lost when the gateway stops.
async fn post_all(target: WebhookTarget, egress: Egress, queue: Arc<AlertQueue>) {
    loop {
        let Some((number, alert)) = queue.first() else {
            queue.came.notified().await;
            continue;
        };
        let posted = post(&target, &egress, &alert).await;
        // If the gateway stopped meanwhile, `give_up` has removed and recorded it.
        if let (true, Err(why)) = (queue.settle(number), posted) {
            not_delivered(&queue.journal, &alert, &why);
        }
    }
}

async fn post(target: &WebhookTarget, egress: &Egress, alert: &Value) -> Result<(), String> {
    let mut why = String::new();
    for pause in PAUSES {
        sleep(pause).await;
        match egress.fetch(&target.rules, target.request(alert)).await {
            Ok(answer) if (200..300).contains(&answer.status) => return Ok(()),
            Ok(answer) => why = format!("the webhook answered {}", answer.status),
            Err(error) => why = error.to_string(),
        }
    }
    Err(why)
}

/// Records an alert that the webhook did not get.
fn not_delivered(journal: &FileJournal, alert: &Value, why: &str) {
    // An alert without a call names a worker.
    let (call, worker) = (alert.get("callId"), alert.get("worker"));
    let record = json!({ "kind": "alert.not_delivered", "callId": call, "worker": worker, "message": why });
    // If the journal cannot be written, the gateway is not ready anyway.
    let _ = journal.write(&record);
}

fn milliseconds(at: SystemTime) -> u64 {
    u64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

const MOST_WAITING: usize = 1_000;
/// How long a stopping gateway waits for the webhook.
const LAST_DELIVERY: Duration = Duration::from_secs(3);
const A_MOMENT: Duration = Duration::from_millis(10);

/// The pause before each attempt.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)];

#[cfg(test)]
mod tests;
