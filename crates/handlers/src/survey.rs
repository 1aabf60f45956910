//! What would a call touch? Read off its arguments by the tool's own words, and judged before anything runs.
//!
//! A path is opened here. A command gets what was opened, and JavaScript reaches a path only where it led here, so that
//! nobody can put something else in its place between looking and using. A host cannot be held; the way out judges it again.

mod fields;
mod spelling;

use std::sync::Arc;

use serde_json::{Map, Value};
use toolgate_egress::{EgressMode, EgressRules, HostRule, ProxyLimits, parse_url};
use toolgate_gate::{EffectKind, Reason, Refusal, StopFlag, Survey, SurveyQuestion, Surveyed, Touch};
use toolgate_policy::{DecisionSource, EffectivePolicy};
use toolgate_spec::model::ToolSpec;

use self::fields::{Field, Named, Spelling};
use crate::{
    files::{FileError, FileGrants, Files, Held, JudgedPath, Wanted},
    grants,
    places::Places,
};

/// Looks at the arguments of one tool's calls. Made once, when the tool is loaded.
#[derive(Debug)]
pub struct Surveyor {
    fields: Vec<Field>,
    /// What the arguments' schema says about texts, which of a path has to hold for its real name as well.
    rules_of_texts: Vec<spelling::Rule>,
    files: Option<Arc<FileGrants>>,
    rules: Arc<EgressRules>,
    unknown_hosts: UnknownHosts,
    without_network: WithoutNetwork,
    /// In capitals.
    methods: Vec<String>,
    requests: Requests,
}

/// Who makes the tool's requests?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Requests {
    /// The gateway, which sees each of them.
    Gateway,
    /// A command, through the proxy; what it sends by TLS nobody sees.
    Command,
}

/// What becomes of a host that a call names, where its tool has no network?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WithoutNetwork {
    /// `accessUpgradeable: proxy`: a person may let this one call reach it.
    Ask,
    Refuse,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum UnknownHosts {
    Ask,
    Refuse,
}

/// What the run may use: the paths that were opened, and what a person was asked for on top of the tool's own grants.
#[derive(Debug, Default)]
pub struct CallGrants {
    pub paths: Vec<GrantedPath>,
    /// The tool's own rules with the asked-for hosts added; `None` where nothing was asked for.
    pub rules: Option<Arc<EgressRules>>,
    /// Methods that a person was asked for.
    pub methods: Vec<String>,
}

#[derive(Debug)]
pub struct GrantedPath {
    /// As it stands in the arguments.
    pub asked: String,
    /// Where it leads: absolute, without links.
    pub real: String,
    pub wanted: Wanted,
    /// For a command; `None` where nothing is there.
    pub held: Option<Held>,
}

/// What a call would touch, and what its run may use.
#[derive(Debug, Default)]
pub struct CallSurvey<G> {
    pub touches: Vec<Touch>,
    pub widened: Vec<String>,
    pub questions: Vec<SurveyQuestion>,
    /// Texts that are built from the arguments for another program.
    pub built: Vec<String>,
    pub granted: G,
}

/// What was found so far. The grants are kept apart, because both are changed at once.
type Found = CallSurvey<()>;

impl<G> CallSurvey<G> {
    /// Makes the gate's survey of it, with the call that `call` makes of the grants.
    pub fn into_survey<C: Surveyed + 'static>(self, call: impl FnOnce(G) -> C) -> Survey {
        let Self { touches, widened, questions, built, granted } = self;
        Survey { touches, widened, questions, built, call: Box::new(call(granted)) }
    }
}

impl CallGrants {
    /// Where the paths led, for a run that opens them by their names.
    pub fn judged_paths(&self) -> Arc<[JudgedPath]> {
        let judged = |path: &GrantedPath| JudgedPath { asked: path.asked.clone(), real: path.real.clone() };
        self.paths.iter().map(judged).collect()
    }
}

impl Surveyor {
    pub fn new(
        spec: &ToolSpec,
        policy: &EffectivePolicy,
        places: &Places,
        without_network: WithoutNetwork,
    ) -> Self {
        let asks = policy.network.ask_for_unknown_hosts.value;
        let unknown_hosts = if asks { UnknownHosts::Ask } else { UnknownHosts::Refuse };
        Self {
            fields: fields::of(spec, policy, without_network),
            rules_of_texts: spelling::rules(spec.governance.input.as_ref()),
            files: grants::files(policy, places).map(Arc::new),
            rules: Arc::new(grants::rules(&policy.network)),
            unknown_hosts,
            without_network,
            methods: policy.approval.ask_for_methods.values().map(|name| name.to_uppercase()).collect(),
            requests: Requests::Gateway,
        }
    }

    /// The tool makes its requests itself.
    #[must_use]
    pub fn of_a_command(self) -> Self {
        Self { requests: Requests::Command, ..self }
    }

    /// Methods that are refused in the run.
    pub fn methods_not_asked_for(&self, granted: &CallGrants) -> Vec<String> {
        self.methods.iter().filter(|name| !granted.methods.contains(name)).cloned().collect()
    }

    /// Is this argument, or what is listed in it, judged as a path?
    pub fn judges_path(&self, name: &str) -> bool {
        fields::name_path(&self.fields, name)
    }

    /// Only paths lead to the disk, and only where files are granted at all.
    pub fn waits_for_disk(&self) -> bool {
        self.files.is_some() && fields::name_any_path(&self.fields)
    }

    pub fn survey(
        &self,
        arguments: &Map<String, Value>,
        stop: &StopFlag,
    ) -> Result<CallSurvey<CallGrants>, Refusal> {
        let mut found = Found::default();
        let mut granted = CallGrants::default();
        let mut files = None;
        let named = fields::named(&self.fields, arguments);
        self.check_count(&named)?;
        for Named { kind, text, spelling } in named {
            match kind {
                EffectKind::Fetch => self.host(text, spelling, &mut found, &mut granted)?,
                EffectKind::Read => {
                    self.path(text, Wanted::Read, &mut files, stop, &mut found, &mut granted)?;
                }
                EffectKind::Write => {
                    self.path(text, Wanted::Write, &mut files, stop, &mut found, &mut granted)?;
                }
            }
        }
        if let Some(files) = &self.files {
            let base = &files.workspace;
            spelling::check(&self.rules_of_texts, &self.fields, arguments, &granted.paths, base)?;
        }
        self.method(arguments, &mut found, &mut granted);
        let Found { touches, widened, questions, built, granted: () } = found;
        Ok(CallSurvey { touches, widened, questions, built, granted })
    }

    /// Before the first of them is opened.
    fn check_count(&self, named: &[Named<'_>]) -> Result<(), Refusal> {
        let most = match self.requests {
            Requests::Command => MOST_HELD,
            Requests::Gateway => MOST_JUDGED,
        };
        if named.iter().filter(|one| one.kind != EffectKind::Fetch).count() <= most {
            return Ok(());
        }
        Err(Refusal {
            reason: Reason::ArgumentRefused,
            message: format!("the arguments name more than {most} paths"),
            remedy: "name a folder above them, or fewer".to_owned(),
        })
    }

    fn path(
        &self,
        asked: &str,
        wanted: Wanted,
        files: &mut Option<Files>,
        stop: &StopFlag,
        found: &mut Found,
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
            Wanted::Read => EffectKind::Read,
            Wanted::Write => EffectKind::Write,
        };
        // JavaScript opens it again, by its name.
        let held = located.held.filter(|_| self.requests == Requests::Command);
        found.touches.push(Touch { kind, target: located.real.clone() });
        if let (Wanted::Write, Some(held)) = (wanted, &held)
            && held.path != located.real
        {
            let target = held.path.clone();
            found.widened.push(format!("to make `{}` it may write all of `{target}`", located.real));
            found.touches.push(Touch { kind, target });
        }
        granted.paths.push(GrantedPath { asked: asked.to_owned(), real: located.real, wanted, held });
        Ok(())
    }

    fn host(
        &self,
        text: &str,
        spelling: Spelling,
        found: &mut Found,
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
        // A bare name counts as one that is reached by TLS.
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
            // Only the list may be lifted by a person: what is blocked, private or a metadata endpoint stays so.
            if wider.judge_host(&url).is_err() {
                return Err(refused(error.message));
            }
            found.questions.push(SurveyQuestion { source, why });
            granted.rules = Some(Arc::new(wider));
        }
        found.touches.push(Touch { kind: EffectKind::Fetch, target });
        Ok(())
    }

    /// What a person is asked about a host that the tool may not reach by itself; nothing, where nobody is asked.
    fn question_about(&self, host: &str) -> Option<(DecisionSource, String)> {
        let is_address = host.parse::<std::net::IpAddr>().is_ok() || host.starts_with('[');
        match self.rules.mode {
            _ if is_address || is_this_machine(host) => None,
            EgressMode::Allowlist if self.unknown_hosts == UnknownHosts::Ask => {
                Some((DecisionSource::UnknownHost, format!("`{host}` is not among the hosts of this tool")))
            }
            EgressMode::Blocked if self.without_network == WithoutNetwork::Ask => {
                Some((DecisionSource::Network, format!("this tool has no network, and would reach `{host}`")))
            }
            _ => None,
        }
    }

    /// A request is made by the argument's word for it, so that a person can be asked before. Where nobody will see the method,
    /// it may be any, whatever the arguments say; then a person is asked for all of them.
    fn method(&self, arguments: &Map<String, Value>, found: &mut Found, granted: &mut CallGrants) {
        if self.hides_methods(granted) {
            let methods = self.methods.join("`, `");
            found.questions.push(SurveyQuestion {
                source: DecisionSource::Method,
                why: format!("it may reach out by TLS, where nobody sees whether it sends `{methods}`"),
            });
            granted.methods.clone_from(&self.methods);
            return;
        }
        let given = arguments.iter().find(|(name, _)| name.eq_ignore_ascii_case("method"));
        let Some(method) = given.and_then(|(_, value)| value.as_str()).map(str::to_uppercase) else { return };
        if self.methods.contains(&method) {
            found.questions.push(SurveyQuestion {
                source: DecisionSource::Method,
                why: format!("`{method}` can change something at the other end"),
            });
            granted.methods.push(method);
        }
    }

    fn hides_methods(&self, granted: &CallGrants) -> bool {
        let rules = granted.rules.as_deref().unwrap_or(&self.rules);
        self.requests == Requests::Command && !self.methods.is_empty() && may_tunnel(rules)
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

/// Is there a host in it at all? `file:/etc/passwd` would pass for one called `file` with its port left out, and `/etc` for one
/// called `etc`; programs read a file. What has `://` in it is judged as the URL that it is.
fn names_host(text: &str, spelling: Spelling) -> bool {
    if text.contains("://") {
        return true;
    }
    let start = text.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    spelling == Spelling::Any && !start.is_empty() && !start.ends_with(':')
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

/// A command's paths are held open until it runs, and handed to the jail.
const MOST_HELD: usize = 100;
/// Those of JavaScript are compared at every use.
const MOST_JUDGED: usize = 1_000;

#[cfg(test)]
mod tests;
