//! What did the tool ask for, and what came of it? Every wish is judged here again, whatever the worker let through.

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use toolgate_egress::{BodyHolds, Egress, EgressRules, HopTrail, Redirects, Request, effective_methods};
use toolgate_gate::{DiskCheckPermits, NO_DISK_CHECK_PERMIT};
use toolgate_sandbox::{
    Effects,
    wire::{
        Effect, EffectAnswer, EffectError, FetchAnswer, FetchCall, FileCall, JsonAnswer, OUT_OF_TIME,
        Redirect,
    },
};

use crate::{
    files::{FileError, FileGrants, Files, JudgedPath, Veil},
    js_files,
};
use toolgate_policy::Mask;
use toolgate_secrets::SecretFinding;

/// One effect, for the author's eyes and the journal.
#[derive(Clone, Debug)]
pub struct EffectRecord {
    /// `fetch GET` or `safety.fs.readText`.
    pub what: String,
    /// The address without its query, or the path as it was asked for.
    pub target: String,
    /// Where a copy or a move leads; the target is what it takes.
    pub to: Option<String>,
    pub outcome: String,
    pub bytes: u64,
    pub elapsed: Duration,
}

impl EffectRecord {
    #[must_use]
    pub fn masked(self, mask: &Mask) -> Self {
        // Masked first and cut then, or the beginning of a secret would stand at the cut.
        let shorten = |text: &str| -> String { mask.text(text).chars().take(MAX_SHOWN).collect() };
        Self {
            what: shorten(&self.what),
            target: shorten(&self.target),
            to: self.to.as_deref().map(shorten),
            outcome: shorten(&self.outcome),
            ..self
        }
    }
}

/// What the effects of one call may reach.
pub struct EffectScope {
    pub egress: Option<Egress>,
    pub rules: Arc<EgressRules>,
    /// Requests with these need a person's yes, which this call has not.
    pub methods_to_ask_for: Vec<String>,
    pub files: Option<Arc<FileGrants>>,
    /// The paths of the arguments, which must still lead where they led.
    pub judged: Arc<[JudgedPath]>,
    /// What is read of files lacks its secrets; `None` where it is exact.
    pub veil: Option<Veil>,
    /// Where file functions find their place, as those of this caller.
    pub disk_checks: DiskCheckPermits,
    pub caller: String,
}

/// The effects of one call.
pub struct CallEffects {
    scope: EffectScope,
    files: Option<Arc<Files>>,
    secrets: Vec<String>,
    records: Vec<EffectRecord>,
    begun: Option<Begun>,
    over: Arc<AtomicBool>,
    /// Bytes of bodies that arrived for the request that is under way.
    received: Arc<AtomicU64>,
    deadline: Instant,
}

/// An effect that has no outcome yet. The deadline may cut it off at any point, and it must be in the records all the same.
struct Begun {
    what: String,
    target: String,
    to: Option<String>,
    /// Of a request; empty for anything else.
    trail: HopTrail,
    started: Instant,
}

impl Begun {
    /// One record for each place that a request was led to, whatever came of it. The outcome is of the last: the others led on.
    fn ended(self, outcome: String, bytes: u64) -> Vec<EffectRecord> {
        let Self { what, mut target, to, trail, started } = self;
        let elapsed = started.elapsed();
        let record = |target: String, outcome: String, bytes: u64| EffectRecord {
            what: what.clone(),
            target,
            to: to.clone(),
            outcome,
            bytes,
            elapsed,
        };
        let mut records = Vec::new();
        for pair in trail.hops().windows(2) {
            let [from, next] = pair else { continue };
            let status = from.status.map_or_else(|| outcome.clone(), |status| status.to_string());
            records.push(record(std::mem::replace(&mut target, next.url.clone()), status, from.received));
        }
        records.push(record(target, outcome, bytes));
        records
    }
}

impl CallEffects {
    pub fn new(scope: EffectScope, secrets: &[String], time: Duration) -> Self {
        let received = Arc::new(AtomicU64::new(0));
        let egress = scope.egress.map(|egress| egress.with_counter(Arc::clone(&received)));
        Self {
            scope: EffectScope { egress, ..scope },
            files: None,
            secrets: secrets.to_vec(),
            records: Vec::new(),
            begun: None,
            over: Arc::new(AtomicBool::new(false)),
            received,
            deadline: Instant::now() + time,
        }
    }

    /// Once: what is taken is not told again.
    pub fn take_records(&mut self) -> Vec<EffectRecord> {
        self.note_cut_off();
        std::mem::take(&mut self.records)
    }

    /// What arrived was fetched, also where nothing of it is handed on.
    async fn counted_fetch(&mut self, call: FetchCall) -> EffectAnswer {
        self.received.store(0, Ordering::Relaxed);
        let mut answer = self.fetch(call).await;
        if let EffectAnswer::Refused(error) = &mut answer {
            error.moved = self.received.load(Ordering::Relaxed);
        }
        answer
    }

    /// Secrets that were taken out of what was read. Once, as records are.
    pub fn take_found(&mut self) -> Vec<SecretFinding> {
        self.scope.veil.as_ref().map(Veil::take_found).unwrap_or_default()
    }

    async fn fetch(&mut self, call: FetchCall) -> EffectAnswer {
        let trail = HopTrail::default();
        // In any of the forms that are kept out of results.
        let mask = Mask::new(&self.secrets);
        self.begin(Begun {
            what: format!("fetch {}", call.method),
            // A secret may contain the `?` at which the URL is cut.
            target: without_query(&mask.text(&call.url)),
            to: None,
            trail: trail.clone(),
            started: Instant::now(),
        });
        let (start, length) = (call.start_index, call.max_length);
        let limit = call.timeout_ms;
        if let Some(method) = self.method_to_ask_for(&call) {
            self.note("SECURITY method-needs-approval", 0);
            let message = format!(
                "`{method}` needs approval; take the method from an argument called `method`, which lets the gateway ask for approval"
            );
            return refused("SECURITY", "fetch", "method-needs-approval", &message);
        }
        let request = request(call, &mask);
        let Some(egress) = self.scope.egress.clone() else {
            self.note("HELPER_RUNTIME no-egress", 0);
            return refused(
                "HELPER_RUNTIME",
                "fetch",
                "no-egress",
                "this gateway was started without a way out",
            );
        };
        let fetching = egress.fetch_along(&self.scope.rules, request, &trail);
        let outcome = if limit == 0 {
            fetching.await
        } else {
            let Ok(outcome) = tokio::time::timeout(Duration::from_millis(u64::from(limit)), fetching).await
            else {
                self.note("HELPER_RUNTIME aborted", 0);
                let message = "the request took longer than its signal allows";
                return refused("HELPER_RUNTIME", "fetch", "aborted", message);
            };
            outcome
        };
        match outcome {
            Ok(response) => {
                let body = slice(&response.body, start, length).to_vec();
                self.note(response.status.to_string(), response.body.len() as u64);
                EffectAnswer::Fetched(FetchAnswer {
                    status: response.status,
                    redirected: response.hops.len() > 1,
                    url: response.url,
                    headers: response.headers,
                    full_length: response.body.len() as u64,
                    body,
                })
            }
            Err(error) => {
                self.note(format!("{} {}", error.class.word(), error.slug()), 0);
                refused(error.class.word(), "fetch", error.slug(), &mask.text(&error.message))
            }
        }
    }

    /// One that this call may not send, as its method or in a header that servers take for one.
    fn method_to_ask_for(&self, call: &FetchCall) -> Option<String> {
        let headers = call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut meant = effective_methods(&call.method, headers).map(str::to_uppercase);
        meant.find(|method| self.scope.methods_to_ask_for.contains(method))
    }

    /// Files block, so they are done on a thread that may. It keeps its place until it is done: a disk that does not answer outlasts
    /// the call.
    async fn file(&mut self, call: FileCall) -> EffectAnswer {
        let what = format!("safety.fs.{}", printable(&call.function));
        // The pattern comes first where lines are looked for.
        let place = usize::from(call.function == "grep");
        let target = call.arguments.get(place).cloned().unwrap_or_default();
        let leads = matches!(call.function.as_str(), "copy" | "move");
        let to = if leads { call.arguments.get(1).cloned() } else { None };
        let (trail, started) = (HopTrail::default(), Instant::now());
        self.begin(Begun { what: what.clone(), target, to, trail, started });
        let Some(grants) = self.scope.files.clone() else {
            self.note("SECURITY files-not-granted", 0);
            return refused("SECURITY", &what, "files-not-granted", "this tool was granted no files");
        };
        let (opened, over, deadline) = (self.files.clone(), Arc::clone(&self.over), self.deadline);
        let judged = Arc::clone(&self.scope.judged);
        let sent: usize = call.arguments.iter().map(String::len).sum();
        let veil = self.scope.veil.clone();
        let Some(place) = self.scope.disk_checks.enter(&self.scope.caller, deadline.into()).await else {
            self.note("HELPER_RUNTIME busy", 0);
            return refused("HELPER_RUNTIME", &what, "busy", NO_DISK_CHECK_PERMIT);
        };
        let done = place.spawn(move || {
            let files = if let Some(files) = opened {
                files
            } else {
                let is_over = move || over.load(Ordering::Relaxed) || Instant::now() >= deadline;
                Arc::new(Files::open(&grants, is_over)?.keep_to(&judged)?.veiled(veil))
            };
            let answer = js_files::perform(&files, &call);
            // What the tool sent was counted when it came.
            let moved = files.take_moved().saturating_sub(sent as u64);
            Ok::<_, FileError>((files, answer, moved))
        });
        let (answer, moved) = match done.await {
            Ok(Ok((files, answer, moved))) => {
                self.files = Some(files);
                (answer, moved)
            }
            Ok(Err(error)) => (Err(error), 0),
            Err(_) => {
                self.note("HELPER_RUNTIME io", 0);
                return refused("HELPER_RUNTIME", &what, "io", "the file function did not finish");
            }
        };
        match answer {
            Ok(text) => {
                self.note("ok", text.len() as u64);
                EffectAnswer::Json(JsonAnswer { text, moved })
            }
            Err(error) => {
                self.note(format!("{} {}", error.class.code(), error.reason), 0);
                let message = Mask::new(&self.secrets).text(&error.message);
                let error = refusal(error.class.code(), error.helper, error.reason, &message);
                EffectAnswer::Refused(EffectError { moved, ..error })
            }
        }
    }

    fn begin(&mut self, begun: Begun) {
        self.note_cut_off();
        self.begun = Some(begun);
    }

    /// What was begun and came to no end was dropped at the deadline. How far it came at its last place, nobody knows.
    fn note_cut_off(&mut self) {
        self.note(OUT_OF_TIME, 0);
    }

    /// What came of the effect that was begun, if there is one.
    fn note(&mut self, outcome: impl Into<String>, bytes: u64) {
        if let Some(begun) = self.begun.take() {
            self.records.extend(begun.ended(outcome.into(), bytes));
        }
    }
}

impl Drop for CallEffects {
    /// A walk over a large tree does not outlive its call.
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

impl Effects for CallEffects {
    fn perform(&mut self, effect: Effect) -> Pin<Box<dyn Future<Output = EffectAnswer> + Send + '_>> {
        match effect {
            Effect::Fetch(call) => Box::pin(self.counted_fetch(call)),
            Effect::File(call) => Box::pin(self.file(call)),
        }
    }
}

fn refused(kind: &str, helper: &str, reason: &str, message: &str) -> EffectAnswer {
    EffectAnswer::Refused(refusal(kind, helper, reason, message))
}

fn refusal(kind: &str, helper: &str, reason: &str, message: &str) -> EffectError {
    EffectError {
        kind: kind.to_owned(),
        helper: helper.to_owned(),
        reason: reason.to_owned(),
        message: shortened(message),
        moved: 0,
    }
}

/// Headers that carry a secret are credentials, by whatever name; egress drops them across origins.
fn request(call: FetchCall, mask: &Mask) -> Request {
    let carries_secret = |value: &str| mask.text(value) != value;
    let body_holds = match &call.body {
        Some(body) if carries_secret(&String::from_utf8_lossy(body)) => BodyHolds::Secrets,
        _ => BodyHolds::Data,
    };
    let sensitive: Vec<String> = call
        .headers
        .iter()
        .filter(|(_, value)| carries_secret(value))
        .map(|(name, _)| name.clone())
        .collect();
    Request {
        method: call.method,
        url: call.url,
        headers: call.headers,
        body: call.body.unwrap_or_default().into(),
        redirects: match call.redirect {
            Redirect::Follow => Redirects::Follow,
            Redirect::Error => Redirects::Error,
            Redirect::Manual => Redirects::Manual,
        },
        sensitive_headers: sensitive,
        body_holds,
    }
}

/// Takes a masked message: after the cut, the beginning of a secret could not be recognised.
fn shortened(message: &str) -> String {
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((at, _)) => format!("{}…", message.get(..at).unwrap_or_default()),
        None => message.to_owned(),
    }
}

fn slice(body: &[u8], start: u64, length: u64) -> &[u8] {
    let start = usize::try_from(start).unwrap_or(usize::MAX).min(body.len());
    let rest = body.get(start..).unwrap_or_default();
    match usize::try_from(length) {
        Ok(0) | Err(_) => rest,
        Ok(length) => rest.get(..length.min(rest.len())).unwrap_or_default(),
    }
}

fn without_query(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

fn printable(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).take(40).collect()
}

const MAX_SHOWN: usize = 300;
const MAX_MESSAGE: usize = 2_000;

#[cfg(test)]
mod cut_off;
#[cfg(test)]
mod tests;
