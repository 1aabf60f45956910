//! Opens the parts of a gateway, each from the configuration.

use std::{path::Path, sync::Arc, time::SystemTime};

use toolgate_config::{
    Config,
    model::{Approvals, AskFrom, OnAuditFailure},
};
use toolgate_egress::{Egress, EgressLimits, Listeners, SystemResolver, TlsRoots};
use toolgate_gate::{
    ApprovalSettings, ArgumentLimits, CallLimits, DiskCheckLimits, GateParts, JournalDetail, Observer,
    OnJournalFailure, Publisher,
};
use toolgate_handlers::ToolHandlers;
use toolgate_policy::{AskThreshold, RiskLevel};
use toolgate_secrets::Detector;
use toolgate_store::{ApprovalLimits as QueueLimits, StateDb};

use super::OpenError;
use crate::{
    alerts::Alerts,
    decisions::recorded_queue,
    journal::FileJournal,
    policies::{overrides_from, policies_from},
    rollback::{StateRollback, remember_compared, undo_rollback},
    secret_values::SecretValues,
    upstreams::servers,
};

/// Withdraws tools and tokens that an older, restored state brought back, and records it. Runs before tools are loaded, so
/// none of them is served.
pub(super) fn compare_with_journals(
    config: &Config,
    state: &StateDb,
    journal: &FileJournal,
) -> Result<StateRollback, OpenError> {
    let now = SystemTime::now();
    let broken = |error: toolgate_store::StateError| OpenError { part: "state", problem: error.to_string() };
    let rollback = undo_rollback(&config.state, state, now).map_err(broken)?;
    if !rollback.is_empty() {
        journal.write(&rollback.record())?;
    }
    remember_compared(state, now).map_err(broken)?;
    Ok(rollback)
}

/// Opens the database alone, for commands that need neither tools nor sandbox.
pub fn open_state(config: &Config) -> Result<Arc<StateDb>, OpenError> {
    let limits = QueueLimits {
        max_pending: config.approvals.max_pending,
        max_pending_per_caller: config.approvals.max_pending_per_caller,
    };
    StateDb::open(&config.state.join("state.db"), limits)
        .map(Arc::new)
        .map_err(|error| OpenError { part: "state", problem: error.to_string() })
}

/// Opens egress for tools and for the gateway's own requests. No request reaches a listener of a gateway with the same state
/// directory.
pub fn open_egress(state: &Path) -> Result<Egress, OpenError> {
    let broken = |problem: String| OpenError { part: "egress", problem };
    let resolver = SystemResolver::new().map_err(|error| broken(error.to_string()))?;
    let listeners = Listeners::published_in(state.join("listeners"));
    Egress::new(Arc::new(resolver), &TlsRoots::System, EgressLimits::default(), listeners)
        .map_err(|error| broken(error.message))
}

pub(super) fn publisher(
    config: &Config,
    handlers: &Arc<ToolHandlers>,
    state: &Arc<StateDb>,
    secrets: &SecretValues,
) -> Result<Publisher, OpenError> {
    let broken = |error: crate::PolicyFilesError| OpenError { part: "policy", problem: error.to_string() };
    let files = &config.policy;
    let policies = policies_from(files.baseline.as_deref(), files.profiles.as_deref()).map_err(broken)?;
    let overrides = files.overrides.as_deref().map(overrides_from).transpose().map_err(broken)?;
    // Before documents are judged: a tool of a server that is not configured is not offered.
    handlers.mcp.upstreams.configure(servers(config, &handlers.cli, &policies));
    Ok(Publisher {
        policies: Arc::new(policies),
        overrides: overrides.map(Arc::new),
        handlers: Arc::clone(handlers) as Arc<dyn toolgate_gate::Handlers>,
        passes: Arc::clone(state) as Arc<dyn toolgate_gate::PassStore>,
        secrets: Arc::new(secrets.clone()),
    })
}

pub(super) fn gate_parts(
    config: &Config,
    journal: &FileJournal,
    state: &Arc<StateDb>,
    secrets: Arc<Detector>,
) -> GateParts {
    let approvals = &config.approvals;
    GateParts {
        journal: Arc::new(journal.clone()),
        on_journal_failure: match config.audit.on_failure {
            OnAuditFailure::Refuse => OnJournalFailure::Refuse,
            OnAuditFailure::Continue => OnJournalFailure::Continue,
        },
        journal_detail: if config.audit.debug { JournalDetail::Everything } else { JournalDetail::Digests },
        queue: recorded_queue(journal, state, &secrets),
        approvals: approval_settings(approvals),
        arguments: argument_limits(config),
        calls: CallLimits {
            calls: config.limits.calls as usize,
            calls_per_caller: config.limits.calls_per_caller as usize,
            waiting: config.limits.waiting as usize,
            wait_timeout: config.limits.wait_timeout,
            asking: approvals.max_pending as usize,
            asking_per_caller: approvals.max_pending_per_caller as usize,
        },
        disk_checks: DiskCheckLimits {
            total: config.limits.disk_checks as usize,
            per_caller: config.limits.disk_checks_per_caller as usize,
            timeout: config.limits.disk_check_timeout,
        },
        secrets,
    }
}

pub(super) fn approval_settings(approvals: &Approvals) -> ApprovalSettings {
    ApprovalSettings {
        ask_from: ask_threshold(approvals.ask_from),
        client_may_answer: approvals.client_may_answer,
        self_approval: approvals.self_approval,
        timeout: approvals.timeout,
        expires: approvals.expires,
        trust: approvals.trust,
    }
}

/// Converts the configured threshold for the gate.
pub const fn ask_threshold(ask_from: AskFrom) -> AskThreshold {
    match ask_from {
        AskFrom::Always => AskThreshold::Always,
        AskFrom::L1 => AskThreshold::From(RiskLevel::L1),
        AskFrom::L2 => AskThreshold::From(RiskLevel::L2),
        AskFrom::L3 => AskThreshold::From(RiskLevel::L3),
        AskFrom::L4 => AskThreshold::From(RiskLevel::L4),
        AskFrom::L5 => AskThreshold::From(RiskLevel::L5),
        AskFrom::Never => AskThreshold::Never,
    }
}

pub(super) fn argument_limits(config: &Config) -> ArgumentLimits {
    ArgumentLimits {
        bytes: usize::try_from(config.limits.arguments).unwrap_or(usize::MAX),
        depth: config.limits.depth as usize,
    }
}

/// The webhook delivery, if configured, and the observer of calls.
pub(super) type AlertWiring = (Option<Arc<Alerts>>, Option<Arc<dyn Observer>>);

/// Starts the webhook delivery, which then observes calls before `next`.
pub(super) fn open_alerts(
    config: &Config,
    egress: &Egress,
    journal: &FileJournal,
    next: Option<Arc<dyn Observer>>,
) -> Result<AlertWiring, OpenError> {
    let Some(webhook) = &config.audit.webhook else { return Ok((None, next)) };
    let alerts = Arc::new(Alerts::start(webhook, egress, journal.clone(), next)?);
    let observer: Arc<dyn Observer> = Arc::<Alerts>::clone(&alerts);
    Ok((Some(alerts), Some(observer)))
}
