//! Performs the effects of JavaScript calls. Every request is checked here again, whatever the worker allowed.

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
use toolgate_gate::{DiskCheckPermits, EffectEntry, EffectKind, NO_DISK_CHECK_PERMIT};
use toolgate_policy::Mask;
use toolgate_sandbox::{
    Effects,
    wire::{
        Effect, EffectAnswer, EffectError, FetchAnswer, FetchCall, FileCall, JsonAnswer, OUT_OF_TIME,
        Redirect,
    },
};
use toolgate_secrets::SecretFinding;

use super::file_calls;
use crate::files::{FileError, FileGrants, Files, JudgedPath, SecretRedactor};

/// Masks an entry and shortens its texts. It masks first, because a cut secret would not be recognised.
pub fn masked(entry: &EffectEntry, mask: &Mask) -> EffectEntry {
    let shorten = |text: &str| -> String { mask.text(text).chars().take(MAX_SHOWN).collect() };
    EffectEntry {
        what: shorten(&entry.what),
        target: shorten(&entry.target),
        to: entry.to.as_deref().map(shorten),
        outcome: shorten(&entry.outcome),
        kind: entry.kind,
        bytes: entry.bytes,
        elapsed: entry.elapsed,
    }
}

fn kind_of(what: &str) -> EffectKind {
    match what.strip_prefix("safety.fs.") {
        None => EffectKind::Fetch,
        Some(function) if WRITING.contains(&function) => EffectKind::Write,
        Some(_) => EffectKind::Read,
    }
}

/// The grants for the effects of one call.
pub struct EffectScope {
    pub egress: Option<Egress>,
    pub rules: Arc<EgressRules>,
    /// Methods that need approval, which this call does not have.
    pub methods_to_ask_for: Vec<String>,
    pub files: Option<Arc<FileGrants>>,
    /// The paths of the arguments, which must still lead to the same place.
    pub judged: Arc<[JudgedPath]>,
    /// Redacts secrets in what is read; `None` if reads are exact.
    pub redactor: Option<SecretRedactor>,
    /// Permits for disk operations of this caller.
    pub disk_checks: DiskCheckPermits,
    pub caller: String,
}

/// The effects of one call.
pub struct CallEffects {
    scope: EffectScope,
    files: Option<Arc<Files>>,
    secrets: Vec<String>,
    records: Vec<EffectEntry>,
    begun: Option<PendingEffect>,
    over: Arc<AtomicBool>,
    /// Bytes of response bodies received for the current request.
    received: Arc<AtomicU64>,
    deadline: Instant,
}

/// An effect without an outcome yet. The deadline may interrupt it at any point, and it must still be recorded.
struct PendingEffect {
    what: String,
    target: String,
    to: Option<String>,
    /// The redirects of a request; empty for other effects.
    trail: HopTrail,
    started: Instant,
}

impl PendingEffect {
    /// One record per hop of a request. The outcome belongs to the last hop; the others were redirects.
    fn ended(self, outcome: String, bytes: u64) -> Vec<EffectEntry> {
        let Self { what, mut target, to, trail, started } = self;
        let elapsed = started.elapsed();
        let record = |target: String, outcome: String, bytes: u64| EffectEntry {
            kind: kind_of(&what),
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

    /// Returns each record once.
    pub fn take_records(&mut self) -> Vec<EffectEntry> {
        self.note_interrupted();
        std::mem::take(&mut self.records)
    }

    /// Received bytes count even if they are not passed on.
    async fn counted_fetch(&mut self, call: FetchCall) -> EffectAnswer {
        self.received.store(0, Ordering::Relaxed);
        let mut answer = self.fetch(call).await;
        if let EffectAnswer::Refused(error) = &mut answer {
            error.moved = self.received.load(Ordering::Relaxed);
        }
        answer
    }

    /// Secrets that were redacted in what was read. Returns each once.
    pub fn take_found(&mut self) -> Vec<SecretFinding> {
        self.scope.redactor.as_ref().map(SecretRedactor::take_found).unwrap_or_default()
    }

    async fn fetch(&mut self, call: FetchCall) -> EffectAnswer {
        let trail = HopTrail::default();
        // Covers all encodings that are masked in results.
        let mask = Mask::new(&self.secrets);
        self.begin(PendingEffect {
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
                "this gateway was started without egress",
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

    /// A method that this call may not send, given directly or in a method-override header.
    fn method_to_ask_for(&self, call: &FetchCall) -> Option<String> {
        let headers = call.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let mut meant = effective_methods(&call.method, headers).map(str::to_uppercase);
        meant.find(|method| self.scope.methods_to_ask_for.contains(method))
    }

    /// Runs a file function on the blocking pool. The thread keeps its permit until it is done, because a disk that
    /// does not respond can outlast the call.
    async fn file(&mut self, call: FileCall) -> EffectAnswer {
        let what = format!("safety.fs.{}", printable(&call.function));
        // For `grep`, the pattern is the first argument.
        let place = usize::from(call.function == "grep");
        let target = call.arguments.get(place).cloned().unwrap_or_default();
        let leads = matches!(call.function.as_str(), "copy" | "move");
        let to = if leads { call.arguments.get(1).cloned() } else { None };
        let (trail, started) = (HopTrail::default(), Instant::now());
        self.begin(PendingEffect { what: what.clone(), target, to, trail, started });
        let Some(grants) = self.scope.files.clone() else {
            self.note("SECURITY files-not-granted", 0);
            return refused("SECURITY", &what, "files-not-granted", "this tool was granted no files");
        };
        let (opened, over, deadline) = (self.files.clone(), Arc::clone(&self.over), self.deadline);
        let judged = Arc::clone(&self.scope.judged);
        let sent: usize = call.arguments.iter().map(String::len).sum();
        let redactor = self.scope.redactor.clone();
        let Some(place) = self.scope.disk_checks.enter(&self.scope.caller, deadline.into()).await else {
            self.note("HELPER_RUNTIME busy", 0);
            return refused("HELPER_RUNTIME", &what, "busy", NO_DISK_CHECK_PERMIT);
        };
        let done = place.spawn(move || {
            let files = if let Some(files) = opened {
                files
            } else {
                let is_over = move || over.load(Ordering::Relaxed) || Instant::now() >= deadline;
                Arc::new(Files::open(&grants, is_over)?.restrict_to(&judged)?.redacted(redactor))
            };
            let answer = file_calls::perform(&files, &call);
            // The arguments were counted when they arrived.
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

    fn begin(&mut self, begun: PendingEffect) {
        self.note_interrupted();
        self.begun = Some(begun);
    }

    /// An effect without an outcome was dropped at the deadline. How far its last hop got is unknown.
    fn note_interrupted(&mut self) {
        self.note(OUT_OF_TIME, 0);
    }

    /// Records the outcome of the pending effect, if any.
    fn note(&mut self, outcome: impl Into<String>, bytes: u64) {
        if let Some(begun) = self.begun.take() {
            self.records.extend(begun.ended(outcome.into(), bytes));
        }
    }
}

impl Drop for CallEffects {
    /// A walk over a large tree must end with its call.
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

/// Headers that contain a secret are credentials, whatever their name; egress drops them across origins.
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

/// Takes a masked message, because a cut secret would not be recognised.
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

const WRITING: &[&str] = &["writeText", "appendText", "editText", "copy", "move", "delete", "deleteDir"];
const MAX_SHOWN: usize = 300;
const MAX_MESSAGE: usize = 2_000;

#[cfg(test)]
mod interrupted;
#[cfg(test)]
mod tests;
