//! Tools of upstream MCP servers. The gate treats them like every other tool; the server runs in a jail or behind egress.

mod answer;
mod server;
mod upstreams;

use std::{fmt, sync::Arc, time::Duration};

use serde_json::{Map, Value};
use tokio::time::Instant;
use toolgate_gate::{
    Handlers, Refusal, RunFuture, RunReport, RunRequest, RunUsage, Runnable, StopFlag, Survey, Surveyed,
    Touch,
};
use toolgate_policy::{EffectivePolicy, Mask};
use toolgate_spec::model::{Body, Handler, McpHandler, ToolSpec};

pub use self::{
    server::{UpstreamIsolation, UpstreamLimits, UpstreamServer, UpstreamTransport},
    upstreams::{ListingObserver, UpstreamStatus, Upstreams},
};
use crate::{
    places::Places,
    survey::{NetworkUpgrade, Surveyor},
};

/// The handler of tools of upstream servers.
#[derive(Clone, Debug)]
pub struct McpHandlers {
    pub places: Places,
    pub upstreams: Upstreams,
}

impl Handlers for McpHandlers {
    fn prepare(&self, spec: &Arc<ToolSpec>, policy: &EffectivePolicy) -> Result<Arc<dyn Runnable>, String> {
        let Body::Handler(Handler::Mcp(mcp)) = &spec.body else {
            return Err("it is not a tool of an upstream server".to_owned());
        };
        self.upstreams.check(&mcp.upstream)?;
        Ok(Arc::new(UpstreamTool {
            handler: mcp.clone(),
            surveyor: Surveyor::new(spec, policy, &self.places, NetworkUpgrade::Refuse),
            upstreams: self.upstreams.clone(),
            deadline: Duration::from_millis(policy.execution.timeout_ms.value),
        }))
    }
}

/// A tool of an upstream server, ready for any number of calls.
struct UpstreamTool {
    handler: McpHandler,
    surveyor: Surveyor,
    upstreams: Upstreams,
    deadline: Duration,
}

impl Runnable for UpstreamTool {
    fn survey(self: Arc<Self>, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Survey, Refusal> {
        let survey = self.surveyor.survey(arguments, stop)?;
        Ok(survey.into_survey(|_granted| UpstreamCall(self)))
    }

    fn survey_waits_for_disk(&self) -> bool {
        self.surveyor.waits_for_disk()
    }

    fn mask(&self) -> Mask {
        self.upstreams.mask(&self.handler.upstream)
    }
}

/// One call of an upstream tool. The server opens its files by itself, inside its jail.
#[derive(Debug)]
struct UpstreamCall(Arc<UpstreamTool>);

impl Surveyed for UpstreamCall {
    fn recheck(&self, arguments: &Map<String, Value>, stop: &StopFlag) -> Result<Vec<Touch>, Refusal> {
        self.0.surveyor.survey(arguments, stop).map(|survey| survey.touches)
    }

    fn run(self: Box<Self>, request: RunRequest<'_>) -> RunFuture<'_, RunReport> {
        Box::pin(async move {
            let tool = &self.0;
            let begun = Instant::now();
            let done = tool
                .upstreams
                .call(&tool.handler, request.arguments, request.caller, begun + tool.deadline)
                .await;
            let mask = tool.mask();
            let elapsed_us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
            RunReport {
                outcome: done
                    .answer
                    .and_then(|result| answer::value_of(result, &mask))
                    .map(Some)
                    .map_err(|failure| failure.into_run_failure(&mask)),
                console: Vec::new(),
                console_dropped: 0,
                effects: done.effects,
                effects_dropped: 0,
                usage: RunUsage { elapsed_us, ..RunUsage::default() },
                layers: done.layers,
                refused: done.denied,
                refused_dropped: 0,
                withheld: Vec::new(),
                worker: None,
            }
        })
    }
}

impl fmt::Debug for UpstreamTool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("UpstreamTool").field("handler", &self.handler).finish_non_exhaustive()
    }
}
