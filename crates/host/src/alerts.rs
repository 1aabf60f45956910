//! Who is told of an alert, beside the journal? A webhook, from a task of its own, so that no call waits for it.

use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde_json::{Value, json};
use tokio::{sync::mpsc, time::sleep};
use toolgate_config::model::Webhook;
use toolgate_egress::{BodyHolds, Egress, Redirects, Request, Rules, parse_url};
use toolgate_gate::{Finished, Observer};

use crate::{OpenError, journal::FileJournal};

/// Posts what calls alert to, and passes every call on to the next observer.
pub struct Alerts {
    queue: mpsc::Sender<Value>,
    journal: FileJournal,
    next: Option<Arc<dyn Observer>>,
}

impl Alerts {
    /// Needs a runtime of tokio. The task ends with the observer.
    pub fn start(
        webhook: &Webhook,
        egress: &Egress,
        journal: FileJournal,
        next: Option<Arc<dyn Observer>>,
    ) -> Result<Self, OpenError> {
        let target = Target::of(webhook)?;
        let (queue, waiting) = mpsc::channel(MOST_WAITING);
        tokio::spawn(post_all(target, egress.clone(), journal.clone(), waiting));
        Ok(Self { queue, journal, next })
    }
}

impl Observer for Alerts {
    fn finished(&self, call: &Finished<'_>) {
        if !call.record.alerts.is_empty() {
            let alert = message(call);
            // A webhook that is slower than the alerts misses some; the journal has them all.
            if let Err(lost) = self.queue.try_send(alert) {
                not_delivered(&self.journal, &lost.into_inner(), "too many alerts wait for the webhook");
            }
        }
        if let Some(next) = &self.next {
            next.finished(call);
        }
    }
}

/// Never the arguments: whoever reads the webhook looks the call up in the journal.
fn message(call: &Finished<'_>) -> Value {
    let record = call.record;
    json!({
        "kind": "alert",
        "callId": record.call_id,
        "caller": record.caller.get("sub"),
        "tool": record.tool.get("name"),
        "alerts": record.alerts,
        "outcome": record.outcome,
        "reason": record.reason,
        "timestampMs": milliseconds(call.begun),
    })
}

/// The one address that alerts go to.
struct Target {
    url: String,
    rules: Rules,
    token: Option<String>,
}

impl Target {
    fn of(webhook: &Webhook) -> Result<Self, OpenError> {
        let told = |problem: String| OpenError { part: "audit.webhook", problem };
        let url = parse_url(&webhook.url).map_err(|error| told(error.to_string()))?;
        let rules = Rules::only(&url);
        rules.judge_host(&url).map_err(|error| told(error.to_string()))?;
        let token = webhook.token_env.as_ref().map(|name| {
            std::env::var(name).map_err(|_| told(format!("the environment variable `{name}` is not set")))
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

async fn post_all(target: Target, egress: Egress, journal: FileJournal, mut waiting: mpsc::Receiver<Value>) {
    while let Some(alert) = waiting.recv().await {
        if let Err(why) = post(&target, &egress, &alert).await {
            not_delivered(&journal, &alert, &why);
        }
    }
}

async fn post(target: &Target, egress: &Egress, alert: &Value) -> Result<(), String> {
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

/// What did not arrive is written down, for somebody relies on being told.
fn not_delivered(journal: &FileJournal, alert: &Value, why: &str) {
    let record = json!({ "kind": "alert.not_delivered", "callId": alert.get("callId"), "message": why });
    // A journal that cannot be written makes the gateway unready by itself; there is nobody else to tell.
    let _ = journal.files.append(&record);
}

fn milliseconds(at: SystemTime) -> u64 {
    u64::try_from(at.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis()).unwrap_or(u64::MAX)
}

const MOST_WAITING: usize = 1_000;

/// Before each try.
const PAUSES: [Duration; 3] = [Duration::ZERO, Duration::from_secs(1), Duration::from_secs(5)];
