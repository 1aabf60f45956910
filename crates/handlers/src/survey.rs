//! Resolves what a call would touch from its arguments, and checks it before anything runs.
//!
//! Paths are opened here. A command gets the open files, and JavaScript may use a path only if it still leads to the
//! same place, so there is no TOCTOU race. A host cannot be held open, so egress checks it again.

mod fields;
mod spelling;

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_egress::{EgressMode, EgressRules, HostRule, ProxyLimits, parse_url};
use toolgate_gate::{EffectKind, Reason, Refusal, StopFlag, Survey, SurveyQuestion, Surveyed, Touch};
use toolgate_policy::{DecisionSource, EffectivePolicy};
use toolgate_spec::model::ToolSpec;

use self::fields::{HostSpelling, NamedTarget, TargetField};
use crate::{
    files::{FileAccess, FileError, FileGrants, Files, HeldPath, JudgedPath},
    grants,
    places::Places,
};

/// Checks the arguments of calls of one tool. Created when the tool is loaded.
#[derive(Debug)]
pub struct Surveyor {
    fields: Vec<TargetField>,
    /// Rules of the input schema for texts. For a path, they must also hold for the real path.
    rules_of_texts: Vec<spelling::TextRule>,
    files: Option<Arc<FileGrants>>,
    rules: Arc<EgressRules>,
    unknown_hosts: UnknownHosts,
    upgrade: NetworkUpgrade,
    /// In upper case.
    methods: Vec<String>,
    sender: RequestSender,
}

/// Who sends the tool's requests.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RequestSender {
    /// The gateway, which sees each of them.
    Gateway,
    /// A command, through the proxy. Its TLS traffic cannot be seen.
    Command,
}

/// The treatment of hosts that a call names, if its tool has no network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NetworkUpgrade {
    /// `accessUpgradeable: proxy`: a person may allow it for this call.
    Ask,
    Refuse,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UnknownHosts {
    Ask,
    Refuse,
}

/// What the run may use: the opened paths, and what a person was asked to allow beyond the tool's grants.
#[derive(Debug, Default)]
pub struct CallGrants {
    pub paths: Vec<GrantedPath>,
    /// The tool's rules with the requested hosts added; `None` if there were none.
    pub rules: Option<Arc<EgressRules>>,
    /// Methods that a person was asked to allow.
    pub methods: Vec<String>,
}

#[derive(Debug)]
pub struct GrantedPath {
    /// As written in the arguments.
    pub asked: String,
    /// The real path: absolute, without symlinks.
    pub real: String,
    pub wanted: FileAccess,
    /// Only for a command; `None` if nothing exists there.
    pub held: Option<HeldPath>,
}

/// The paths and hosts that a call would touch, and the grants of its run.
#[derive(Debug, Default)]
pub struct CallSurvey<G> {
    pub touches: Vec<Touch>,
    pub widened: Vec<String>,
    pub questions: Vec<SurveyQuestion>,
    /// Texts for other programs that are built from the arguments.
    pub built: Vec<String>,
    pub granted: G,
}

/// The findings so far. The grants are separate, because both are borrowed mutably.
type SurveyFindings = CallSurvey<()>;

impl<G> CallSurvey<G> {
    /// Converts it to the gate's survey; `call` receives the grants.
    pub fn into_survey<C: Surveyed + 'static>(self, call: impl FnOnce(G) -> C) -> Survey {
        let Self { touches, widened, questions, built, granted } = self;
        Survey { touches, widened, questions, built, call: Box::new(call(granted)) }
    }
}

impl CallGrants {
    /// The real paths, for a run that opens them by name.
    pub fn judged_paths(&self) -> Arc<[JudgedPath]> {
        let judged = |path: &GrantedPath| JudgedPath { asked: path.asked.clone(), real: path.real.clone() };
        self.paths.iter().map(judged).collect()
    }
}

impl Surveyor {
    pub fn new(spec: &ToolSpec, policy: &EffectivePolicy, places: &Places, upgrade: NetworkUpgrade) -> Self {
        let asks = policy.network.ask_for_unknown_hosts.value;
        let unknown_hosts = if asks { UnknownHosts::Ask } else { UnknownHosts::Refuse };
        Self {
            fields: fields::of(spec, policy, upgrade),
            rules_of_texts: spelling::rules(spec.governance.input.as_ref()),
            files: grants::files(policy, places).map(Arc::new),
            rules: Arc::new(grants::rules(&policy.network)),
            unknown_hosts,
            upgrade,
            methods: policy.approval.ask_for_methods.values().map(|name| name.to_uppercase()).collect(),
            sender: RequestSender::Gateway,
        }
    }

    /// The tool sends its requests itself.
    #[must_use]
    pub fn for_command(self) -> Self {
        Self { sender: RequestSender::Command, ..self }
    }

    /// Methods that are denied in the run.
    pub fn unapproved_methods(&self, granted: &CallGrants) -> Vec<String> {
        self.methods.iter().filter(|name| !granted.methods.contains(name)).cloned().collect()
    }

    /// Whether this argument, or an element of it, is checked as a path.
    pub fn judges_path(&self, name: &str) -> bool {
        fields::name_path(&self.fields, name)
    }

    /// Only path arguments need the disk, and only if files are granted.
    pub fn waits_for_disk(&self) -> bool {
        self.files.is_some() && fields::name_any_path(&self.fields)
    }

    pub fn survey(
        &self,
        arguments: &Map<String, Value>,
        stop: &StopFlag,
    ) -> Result<CallSurvey<CallGrants>, Refusal> {
        let mut found = SurveyFindings::default();
        let mut granted = CallGrants::default();
        let mut files = None;
        let named = fields::named(&self.fields, arguments);
        self.check_count(&named)?;
        for NamedTarget { kind, text, spelling } in named {
            match kind {
                EffectKind::Fetch => self.host(text, spelling, &mut found, &mut granted)?,
                EffectKind::Read => {
                    self.path(text, FileAccess::Read, &mut files, stop, &mut found, &mut granted)?;
                }
                EffectKind::Write => {
                    self.path(text, FileAccess::Write, &mut files, stop, &mut found, &mut granted)?;
                }
            }
        }
        if let Some(files) = &self.files {
            let base = &files.workspace;
            spelling::check(&self.rules_of_texts, &self.fields, arguments, &granted.paths, base)?;
        }
        self.method(arguments, &mut found, &mut granted);
        let SurveyFindings { touches, widened, questions, built, granted: () } = found;
        Ok(CallSurvey { touches, widened, questions, built, granted })
    }

    /// Checked before the first one is opened.
    fn check_count(&self, named: &[NamedTarget<'_>]) -> Result<(), Refusal> {
        let most = match self.sender {
            RequestSender::Command => MOST_HELD,
            RequestSender::Gateway => MOST_JUDGED,
        };
        if named.iter().filter(|one| one.kind != EffectKind::Fetch).count() <= most {
            return Ok(());
        }
        Err(Refusal {
            reason: Reason::ArgumentRefused,
            message: format!("the arguments name more than {most} paths"),
            remedy: "name a directory above them, or fewer paths".to_owned(),
        })
    }

    fn path(
        &self,
        asked: &str,
        wanted: FileAccess,
        files: &mut Option<Files>,
        stop: &StopFlag,
        found: &mut SurveyFindings,
        granted: &mut CallGrants,
    ) -> Result<(), Refusal> {
        let grants = self.files.as_ref().ok_or_else(|| Refusal {
            reason: Reason::PathOutsideRoots,
            message: "this tool may not touch files".to_owned(),
            remedy: "use a tool that is granted files".to_owned(),
        })?;
        let opened = if let Some(opened) = files.take() {
            opened
        } else {
            let stop = stop.clone();
            Files::open(grants, move || stop.is_set()).map_err(refusal)?
        };
        let located = opened.locate(asked, wanted).map_err(refusal);
        *files = Some(opened);
        let located = located?;
        let kind = match wanted {
            FileAccess::Read => EffectKind::Read,
            FileAccess::Write => EffectKind::Write,
        };
        // JavaScript opens it again by name.
        let held = located.held.filter(|_| self.sender == RequestSender::Command);
        found.touches.push(Touch { kind, target: located.real.clone() });
        if let (FileAccess::Write, Some(held)) = (wanted, &held)
            && held.path != located.real
        {
            let target = held.path.clone();
            found.widened.push(format!("to create `{}` it may write to all of `{target}`", located.real));
            found.touches.push(Touch { kind, target });
        }
        granted.paths.push(GrantedPath { asked: asked.to_owned(), real: located.real, wanted, held });
        Ok(())
    }

    fn host(
        &self,
        text: &str,
        spelling: HostSpelling,
        found: &mut SurveyFindings,
        granted: &mut CallGrants,
    ) -> Result<(), Refusal> {
        let refused = |message: String| Refusal {
            reason: Reason::HostNotAllowed,
            message,
            remedy: "name a host that this tool may reach".to_owned(),
        };
        if !names_host(text, spelling) {
            return Err(Refusal {
                reason: Reason::ArgumentRefused,
                message: format!("`{}` names no host", text.escape_debug()),
                remedy: "write a complete URL, such as `https://example.com/page`".to_owned(),
            });
        }
        // A bare host name counts as HTTPS.
        let address = if text.contains("://") { text.to_owned() } else { format!("https://{text}/") };
        let url = parse_url(&address).map_err(|error| Refusal {
            reason: Reason::ArgumentRefused,
            message: error.message,
            remedy: "write a complete URL, such as `https://example.com/page`".to_owned(),
        })?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let target = match url.port_or_known_default() {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        };
        if let Err(error) = self.rules.judge_host(&url) {
            let Some((source, why)) = self.question_about(&host) else { return Err(refused(error.message)) };
            let mut wider = granted.rules.as_deref().unwrap_or(&self.rules).clone();
            wider.mode = EgressMode::Allowlist;
            wider.hosts.push(HostRule::exact(host));
            // A person may only extend the list of hosts. Blocked, private and metadata addresses stay denied.
            if wider.judge_host(&url).is_err() {
                return Err(refused(error.message));
            }
            found.questions.push(SurveyQuestion { source, why });
            granted.rules = Some(Arc::new(wider));
        }
        found.touches.push(Touch { kind: EffectKind::Fetch, target });
        Ok(())
    }

    /// The question about a host that the tool may not reach by default; `None` if the policy does not ask.
    fn question_about(&self, host: &str) -> Option<(DecisionSource, String)> {
        let is_address = host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[');
        match self.rules.mode {
            _ if is_address || is_this_machine(host) => None,
            EgressMode::Allowlist if self.unknown_hosts == UnknownHosts::Ask => {
                Some((DecisionSource::UnknownHost, format!("`{host}` is not among the hosts of this tool")))
            }
            EgressMode::Blocked if self.upgrade == NetworkUpgrade::Ask => Some((
                DecisionSource::Network,
                format!("this tool has no network access and would reach `{host}`"),
            )),
            _ => None,
        }
    }

    /// Asks for methods that need approval, as named by an argument. If the method of a request cannot be seen, it
    /// asks for all of them.
    fn method(&self, arguments: &Map<String, Value>, found: &mut SurveyFindings, granted: &mut CallGrants) {
        if self.hides_methods(granted) {
            let methods = self.methods.join("`, `");
            found.questions.push(SurveyQuestion {
                source: DecisionSource::Method,
                why: format!("it may use TLS, which hides whether it sends `{methods}`"),
            });
            granted.methods.clone_from(&self.methods);
            return;
        }
        let given = arguments.iter().find(|(name, _)| name.eq_ignore_ascii_case("method"));
        let Some(method) = given.and_then(|(_, value)| value.as_str()).map(str::to_uppercase) else { return };
        if self.methods.contains(&method) {
            found.questions.push(SurveyQuestion {
                source: DecisionSource::Method,
                why: format!("`{method}` can change data on the server"),
            });
            granted.methods.push(method);
        }
    }

    fn hides_methods(&self, granted: &CallGrants) -> bool {
        let rules = granted.rules.as_deref().unwrap_or(&self.rules);
        self.sender == RequestSender::Command && !self.methods.is_empty() && may_tunnel(rules)
    }
}

/// Loopback by name (RFC 6761). `host` is in lower case and has no trailing dot, as the URL parser leaves it.
fn is_this_machine(host: &str) -> bool {
    host == "localhost" || host.ends_with(".localhost")
}

fn may_tunnel(rules: &EgressRules) -> bool {
    let tunnels = ProxyLimits::default().tunnels;
    rules.mode != EgressMode::Blocked
        && tunnels.iter().any(|tunnel| !rules.blocked_ports.contains(&tunnel.port))
}

/// Whether the text names a host. `file:/etc/passwd` would parse as host `file` without a port, and `/etc` as host
/// `etc`, but programs would read a file. A text with `://` is checked as a URL.
fn names_host(text: &str, spelling: HostSpelling) -> bool {
    if text.contains("://") {
        return true;
    }
    let start = text.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    spelling == HostSpelling::Any && !start.is_empty() && !start.ends_with(':')
}

fn refusal(error: FileError) -> Refusal {
    let (reason, remedy) = match error.reason {
        "path-blocked" => (Reason::PathBlocked, "name another path"),
        "path-escapes-base"
        | "path-not-allowed"
        | "write-outside-workspace"
        | "write-through-symlink"
        | "read-not-granted"
        | "write-not-granted"
        | "grant-unusable"
        | "host-unsupported" => (Reason::PathOutsideRoots, "name a path that this tool may touch"),
        _ => (Reason::ArgumentRefused, "name a path that can be used"),
    };
    Refusal { reason, message: error.message, remedy: remedy.to_owned() }
}

/// The paths of a command stay open until it runs, and are passed to the jail.
const MOST_HELD: usize = 100;
/// The paths of JavaScript are compared at every use.
const MOST_JUDGED: usize = 1_000;

#[cfg(test)]
mod tests;
