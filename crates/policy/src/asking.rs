//! The settings that make the gateway ask a person. `decide` and `toolgate resolve` both use them, so they agree.

use toolgate_spec::model::{ApprovalLevel, ApprovalMode, Body, Handler, NetworkMode, ToolSpec};

use crate::{
    ChangeDirection, DecisionSource, EffectivePolicy, PolicyChange, RiskLevel, SettingOrigin,
    setting::SettingList,
};

/// `approvals.ask_from`: which calls the gateway asks about by itself.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AskThreshold {
    Never,
    /// Tools of this level and above, unless the document or an override decides.
    From(RiskLevel),
    /// Every call of every tool.
    Always,
}

impl AskThreshold {
    /// True if this risk level requires approval. `Always` is a separate source and asks at any level.
    fn asks_by_level(self, level: RiskLevel) -> bool {
        matches!(self, Self::From(lowest) if level >= lowest)
    }

    /// The name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::From(level) => level.name(),
            Self::Always => "always",
        }
    }
}

/// The risk level from which calls of one tool require approval.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AskByRisk {
    /// The document or an override decided; its risk level does not matter.
    Never,
    /// From the level of the gateway's `approvals.ask_from` on.
    Gateway,
    /// From this level on, or from the gateway's if that is lower.
    From(RiskLevel),
}

impl AskByRisk {
    pub fn asks(self, level: RiskLevel, gateway: AskThreshold) -> bool {
        match self {
            Self::Never => false,
            Self::Gateway => gateway.asks_by_level(level),
            Self::From(lowest) => level >= lowest || gateway.asks_by_level(level),
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Gateway => "gateway",
            Self::From(level) => level.name(),
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let levels = RiskLevel::ALL.into_iter().map(Self::From);
        levels.chain([Self::Never, Self::Gateway]).find(|value| value.name() == name)
    }

    /// A greater rank asks less often.
    pub(crate) const fn rank(self) -> u64 {
        match self {
            Self::From(level) => level as u64,
            Self::Gateway => RiskLevel::L5 as u64 + 1,
            Self::Never => RiskLevel::L5 as u64 + 2,
        }
    }
}

/// A setting that makes the gateway ask a person.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct QuestionSource {
    pub source: DecisionSource,
    pub why: String,
    /// The setting that causes the question.
    pub setting: &'static str,
    pub origin: String,
    /// The change that removes the question.
    pub remedy: &'static str,
}

/// The settings that ask about every call of the tool, whatever its arguments.
pub fn questions_of_every_call(
    spec: &ToolSpec,
    policy: &EffectivePolicy,
    level: RiskLevel,
    gateway: AskThreshold,
) -> Vec<QuestionSource> {
    let approval = &policy.approval;
    let mut questions = Vec::new();
    let mut ask = |source, why: String, setting, origin: &SettingOrigin, remedy| {
        questions.push(QuestionSource { source, why, setting, origin: origin.to_string(), remedy });
    };
    match (spec.approval.mode, approval.level.value) {
        (ApprovalMode::Required, _) => {
            let why = "the tool wants every call confirmed".to_owned();
            ask(DecisionSource::HumanInTheLoop, why, "humanInTheLoop", &SettingOrigin::Tool, REMEDY_REQUIRED);
        }
        (_, level @ (ApprovalLevel::Always | ApprovalLevel::Ask)) => {
            let why = if level == ApprovalLevel::Always { "every call is" } else { "calls are" };
            let (setting, remedy) = if approval.level_follows_class {
                ("classification", REMEDY_CLASS)
            } else {
                ("approval.level", REMEDY_LEVEL)
            };
            ask(
                DecisionSource::Capability,
                format!("{why} to be confirmed"),
                setting,
                &approval.level.origin,
                remedy,
            );
        }
        (_, ApprovalLevel::Auto) => {
            if approval.ask_from.value.asks(level, gateway) {
                let why = format!("rated {}", level.name());
                ask(DecisionSource::Risk, why, "approval.askFrom", &approval.ask_from.origin, REMEDY_RISK);
            }
        }
    }
    if gateway == AskThreshold::Always {
        let why = "the gateway confirms every call".to_owned();
        questions.push(QuestionSource {
            source: DecisionSource::Gateway,
            why,
            setting: "approvals.ask_from",
            origin: "configuration".to_owned(),
            remedy: REMEDY_GATEWAY,
        });
    }
    questions
}

/// The settings that ask about some calls, depending on the arguments.
pub fn questions_of_some_calls(spec: &ToolSpec, policy: &EffectivePolicy) -> Vec<QuestionSource> {
    let (approval, network) = (&policy.approval, &policy.network);
    let is_limited = matches!(network.mode.value, NetworkMode::Allowlist | NetworkMode::Strict);
    let is_command = matches!(spec.body, Body::Handler(Handler::Cli(_)));
    let is_upgradeable = network.mode.value == NetworkMode::Blocked && network.proxy_on_approval.value;
    [
        (
            !approval.danger_patterns.is_empty(),
            DecisionSource::DangerPattern,
            "a path, URL or command in the arguments matches a danger pattern",
            "approval.dangerPatterns",
            origins(&approval.danger_patterns),
            REMEDY_PATTERN,
        ),
        (
            is_limited && network.ask_for_unknown_hosts.value,
            DecisionSource::UnknownHost,
            "an argument names a host that is not in `allowedHosts`",
            "network.askForUnknownHosts",
            network.ask_for_unknown_hosts.origin.to_string(),
            REMEDY_HOST,
        ),
        (
            is_command && is_upgradeable,
            DecisionSource::Network,
            "an argument names a host, and the tool has no network",
            "network.proxyOnApproval",
            network.proxy_on_approval.origin.to_string(),
            REMEDY_PROXY,
        ),
        (
            network.mode.value != NetworkMode::Blocked && !approval.ask_for_methods.is_empty(),
            DecisionSource::Method,
            "the request uses one of these methods, or a command may use them over TLS",
            "approval.askForMethods",
            origins(&approval.ask_for_methods),
            REMEDY_METHOD,
        ),
        (
            policy.data.can_leak_data.value,
            DecisionSource::Secret,
            "the arguments probably contain a secret, and the tool can send them out",
            "data.canLeakData",
            policy.data.can_leak_data.origin.to_string(),
            REMEDY_SECRET,
        ),
    ]
    .into_iter()
    .filter(|(is_set, ..)| *is_set)
    .map(|(_, source, why, setting, origin, remedy)| QuestionSource {
        source,
        why: why.to_owned(),
        setting,
        origin,
        remedy,
    })
    .collect()
}

fn origins<T>(list: &SettingList<T>) -> String {
    let mut origins: Vec<String> = list.entries.iter().map(|entry| entry.origin.to_string()).collect();
    origins.dedup();
    origins.join("+")
}

impl PolicyChange {
    /// True if this change makes the gateway ask a person less often.
    pub fn weakens_approval(&self) -> bool {
        self.direction == ChangeDirection::Widened && self.setting.starts_with("approval.")
    }

    /// Describes how a change that weakens approval affects calls.
    pub fn consequence(&self) -> Option<&'static str> {
        if !self.weakens_approval() {
            return None;
        }
        Some(match (self.setting, self.after.as_str()) {
            ("approval.level", "auto") => "calls that required approval run without it",
            ("approval.level", _) => "an approval may be remembered, and later calls then run without one",
            ("approval.askFrom", _) => "the risk level of the tool requires approval less often, or never",
            ("approval.dangerPatterns", _) => "arguments that matched a removed pattern run without approval",
            ("approval.askForMethods", _) => "requests with a removed method run without approval",
            _ => "after one approval, later calls of the same conversation run without one",
        })
    }
}

const REMEDY_REQUIRED: &str = "remove `humanInTheLoop` from the document, or set its mode to `DISABLED`";
const REMEDY_CLASS: &str = "set `approval.level: auto` in the document's capability or in an override; \
                            `humanInTheLoop: DISABLED` does not change this";
const REMEDY_LEVEL: &str = "set `approval.level: auto` in the document's capability or in an override";
const REMEDY_RISK: &str = "set `humanInTheLoop: DISABLED` in the document, `approval.level: auto` in an override, or \
                           raise `approvals.ask_from`";
const REMEDY_GATEWAY: &str = "set `approvals.ask_from` to a risk level or to `never`";
const REMEDY_PATTERN: &str = "call with other arguments; patterns of `capability.extends` go with it, others stand in \
                              the document or an override";
const REMEDY_HOST: &str = "add the host to `network.allowedHosts`";
const REMEDY_PROXY: &str = "grant the host with `network.access: limited` and `allowedHosts`";
const REMEDY_METHOD: &str =
    "set `approval.askForMethods` to the methods to ask about; an empty list asks about none";
const REMEDY_SECRET: &str = "keep secrets out of arguments: use a static variable such as `${API_KEY}`";

#[cfg(test)]
mod tests;
