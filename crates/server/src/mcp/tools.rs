//! The protocol's requests, each handed to whoever answers it. No decisions here.

use std::sync::{Arc, OnceLock};

use http::request::Parts;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
        CompleteResult, Implementation, ListPromptsRequestMethod, ListPromptsResult,
        ListResourceTemplatesRequestMethod, ListResourceTemplatesResult, ListResourcesRequestMethod,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion, ServerCapabilities,
        ServerConfig, SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio_util::task::AbortOnDropHandle;
use toolgate_gate::{Gate, Standing, until_lapse};
use toolgate_policy::Caller;

use super::{
    CallerIdentity, ClientAnswers, McpSettings, call,
    listing::Listings,
    logging::Threshold,
    notify,
    seal::Seal,
    stdio::{CallerNow, SameCaller},
    streams::Streams,
};
use crate::auth::CallerStanding;

/// One connection, session or request of a client.
#[derive(Debug)]
pub struct Door {
    pub shared: Arc<Shared>,
    pub caller: CallerSource,
    pub threshold: Threshold,
    /// Ends with the session.
    watcher: OnceLock<AbortOnDropHandle<()>>,
}

/// What all of them have in common.
#[derive(Debug)]
pub struct Shared {
    pub gate: Gate,
    pub listings: Listings,
    pub seal: Seal,
    pub answers: ClientAnswers,
    pub page_size: usize,
    pub streams: Arc<Streams>,
}

/// How is it known who calls?
#[derive(Clone, Debug)]
pub enum CallerSource {
    /// The front says so with every request.
    Request,
    /// Whoever started the process. What is said over one pair of pipes is one conversation, whatever the era.
    Configured { caller: CallerNow, conversation: String },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Era {
    /// A handshake, and requests in both directions.
    Sessions,
    /// Every request stands for itself.
    Stateless,
}

impl Shared {
    pub fn new(gate: Gate, settings: &McpSettings) -> Arc<Self> {
        Arc::new(Self {
            listings: Listings::new(&gate),
            gate,
            seal: Seal::new(&settings.state_key),
            answers: settings.answers,
            page_size: settings.page_size,
            streams: Streams::new(settings.sessions.streams_per_caller),
        })
    }
}

impl Door {
    pub fn new(shared: Arc<Shared>, caller: CallerSource) -> Self {
        Self { shared, caller, threshold: Threshold::default(), watcher: OnceLock::new() }
    }

    /// There is no caller by default.
    pub fn caller_of(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        match &self.caller {
            CallerSource::Configured { caller, .. } => Ok(caller.get()),
            CallerSource::Request => context
                .extensions
                .get::<Parts>()
                .and_then(|parts| parts.extensions.get::<CallerIdentity>())
                .map(|identity| identity.caller.clone())
                .ok_or_else(|| ErrorData::invalid_request("nobody is known to make this request", None)),
        }
    }

    /// By what this caller was let in, where that can end before the caller is done.
    pub fn standing_of(
        &self,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Option<Arc<dyn Standing>> {
        match &self.caller {
            CallerSource::Configured { caller: now, .. } => {
                Some(Arc::new(SameCaller { then: caller.clone(), now: now.clone() }))
            }
            CallerSource::Request => {
                let known = context.extensions.get::<Parts>()?.extensions.get::<CallerStanding>()?;
                Some(Arc::clone(&known.0))
            }
        }
    }
}

impl Era {
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        match context.protocol_version() {
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => Self::Stateless,
            _ => Self::Sessions,
        }
    }
}

impl ServerHandler for Door {
    fn get_info(&self) -> ServerConfig {
        #[expect(deprecated, reason = "clients of the older eras look for it")]
        let capabilities =
            ServerCapabilities::builder().enable_logging().enable_tools().enable_tool_list_changed().build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("toolgate", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let caller = self.caller_of(&context)?;
        let cursor = request.and_then(|request| request.cursor);
        let Shared { gate, listings, page_size, .. } = &*self.shared;
        let (tools, next) = listings.page(gate, &caller, cursor.as_deref(), *page_size).map_err(|_| {
            ErrorData::invalid_params("there is no such cursor (any more); list from the beginning", None)
        })?;
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = next;
        // What one caller may know of is nobody else's business.
        if Era::of(&context) == Era::Stateless {
            result = result.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private);
        }
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Its future is large, and every handler's future would be as large as the largest.
        Box::pin(call::call(self, request, context)).await
    }

    #[expect(deprecated, reason = "clients of the older eras know nothing else")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if Era::of(&context) == Era::Stateless {
            return Err(ErrorData::method_not_found::<rmcp::model::SetLevelRequestMethod>());
        }
        self.threshold.set(request.level);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.watcher.get_or_init(|| {
            let gate = self.shared.gate.clone();
            AbortOnDropHandle::new(tokio::spawn(notify::tell_of_changes(gate, context.peer)))
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = self.caller_of(context.request_context())?;
        let _place = self.shared.streams.enter(&caller.quota()).ok_or_else(|| {
            ErrorData::invalid_request("you hold too many streams open; close one, then listen again", None)
        })?;
        let mut changes = self.shared.gate.changes();
        let tell = async {
            while changes.changed().await.is_ok() {
                if context.sink().notify_tool_list_changed().await.is_err() {
                    break;
                }
            }
        };
        // Around the telling too: a client that does not read what it is told holds nothing up.
        tokio::select! {
            () = until_lapse(self.standing_of(&caller, context.request_context())) => {
                Err(ErrorData::invalid_request(LAPSED, None))
            }
            () = context.cancelled() => Ok(()),
            () = tell => Ok(()),
        }
    }

    // There are no prompts, resources or completions, and an empty list would say that there could be.

    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }

    async fn complete(
        &self,
        _: CompleteRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}

const INSTRUCTIONS: &str = "Tools behind a governed gateway. A call may be refused, or wait for a person's approval; \
    the answer then says why, and whether and how to try again.";

const LAPSED: &str = "you are no longer let in as you were: your token was revoked or has expired, or `auth` was edited; \
    come in anew";

/// Changes are told to those who listen; everybody else may be this late.
const LIST_TTL_MS: u64 = 1_000;
