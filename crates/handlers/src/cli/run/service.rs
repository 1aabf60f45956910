//! Commands that the gateway keeps running and talks to, such as upstream MCP servers.

use std::{fmt, sync::Arc, time::Duration};

use serde_json::Map;
use tokio::time::Instant;
use toolgate_gate::{ApprovedSecrets, DiskCheckPermits, Purpose, RunRequest, StopFlag, UnreportedEffects};
use toolgate_policy::{EffectivePolicy, Mask, SecretConsumer};
use toolgate_spec::model::ToolSpec;

use super::{CliHandlers, PreparedCommand, order, order::ServiceProcess};
use crate::{
    cli::{line::static_variables, tool::CliTool, view::environment},
    guard::SecretGuard,
    js::secrets,
};

/// A command that can be started any number of times. Its document takes no arguments.
#[derive(Clone)]
pub struct ServicePlan(Arc<PreparedCommand>);

impl CliHandlers {
    /// Prepares a command that the gateway keeps running.
    pub fn service(&self, spec: &Arc<ToolSpec>, policy: &EffectivePolicy) -> Result<ServicePlan, String> {
        secrets::check_variables(spec, self.secrets.as_ref())?;
        let tool = CliTool::new(Arc::clone(spec), policy, &self.host)?.with_limits(|limits, deadline| {
            limits.cpu_seconds = LIFETIME.as_secs();
            *deadline = LIFETIME;
        });
        environment::check_values(&policy.execution, &tool.environment, &self.detector)?;
        Ok(ServicePlan(Arc::new(self.prepared(tool))))
    }
}

impl ServicePlan {
    /// Services are upstream servers. Secrets can be set for one of them only.
    fn consumer(&self) -> SecretConsumer<'_> {
        SecretConsumer::Upstream(&self.0.tool.spec.name)
    }

    /// Starts the command. The jail gets the files as they are now.
    pub async fn start(
        &self,
        disk_checks: &DiskCheckPermits,
        caller: &str,
    ) -> Result<ServiceProcess, String> {
        let prepared = &self.0;
        let arguments = Map::new();
        let survey =
            prepared.tool.survey(&arguments, &StopFlag::default()).map_err(|refusal| refusal.message)?;
        let statics =
            static_variables::resolve(&prepared.tool.spec, self.consumer(), prepared.secrets.as_ref())
                .map_err(|problem| problem.message)?;
        let (agreed, left) = (ApprovedSecrets::default(), UnreportedEffects::default());
        let request = RunRequest {
            arguments: &arguments,
            approved_secrets: &agreed,
            unreported: &left,
            caller,
            purpose: Purpose::Call,
            disk_checks,
        };
        let guard = SecretGuard::new(&prepared.detector, &statics.sent, &agreed);
        let due = Instant::now() + LIFETIME;
        let ordered = order(&prepared.tool, &survey.granted, &statics, request, Arc::new(guard), due).await;
        let (order, _watch) = ordered.map_err(|problem| problem.message)?;
        prepared.launcher.start(order).await
    }

    /// Hides the current values of the command's secrets.
    pub fn mask(&self) -> Mask {
        secrets::mask_of(&self.0.tool.spec, self.consumer(), self.0.secrets.as_ref())
    }
}

impl fmt::Debug for ServicePlan {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("ServicePlan").field(&self.0.tool.spec.name).finish()
    }
}

/// Longer than a service runs: it is stopped when idle, and restarted when needed.
const LIFETIME: Duration = Duration::from_hours(30 * 24);
