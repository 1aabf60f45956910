//! The SDK's request handler: passes each request to the module that answers it.

mod call_request;

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
use toolgate_gate::{AuthStatus, Gate, until_lapse};
use toolgate_policy::Caller;

use super::{
    CallerIdentity, ClientAnswers, McpSettings,
    listing::Listings,
    logging::Threshold,
    notify,
    request_state::StateSeal,
    stdio::{CallerNow, SameCaller},
    streams::Streams,
};
use crate::auth::CallerStanding;

/// Handles the requests of one stdio connection, of one session, or one stateless request.
#[derive(Debug)]
pub struct GatewayHandler {
    pub shared: Arc<McpShared>,
    pub caller: CallerSource,
    pub threshold: Threshold,
    /// Ends with the session.
    watcher: OnceLock<AbortOnDropHandle<()>>,
}

/// Shared by all handlers.
#[derive(Debug)]
pub struct McpShared {
    pub gate: Gate,
    pub listings: Listings,
    pub seal: StateSeal,
    pub answers: ClientAnswers,
    pub page_size: usize,
    pub streams: Arc<Streams>,
}

/// Where a handler learns the caller.
#[derive(Clone, Debug)]
pub enum CallerSource {
    /// From the extensions of each HTTP request.
    Request,
    /// The user who started the process (stdio). A stdio connection is one conversation in every protocol version.
    Configured { caller: CallerNow, conversation: String },
}

/// The two families of protocol versions.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ProtocolMode {
    /// Before 2026-07-28: a handshake, and requests in both directions.
    Sessions,
    /// Since 2026-07-28: requests are independent of each other.
    Stateless,
}

impl McpShared {
    pub fn new(gate: Gate, settings: &McpSettings) -> Arc<Self> {
        Arc::new(Self {
            listings: Listings::new(&gate),
            gate,
            seal: StateSeal::new(&settings.state_key),
            answers: settings.answers,
            page_size: settings.page_size,
            streams: Streams::new(settings.sessions.streams_per_caller),
        })
    }
}

impl GatewayHandler {
    pub fn new(shared: Arc<McpShared>, caller: CallerSource) -> Self {
        Self { shared, caller, threshold: Threshold::default(), watcher: OnceLock::new() }
    }

    /// Fails without an authenticated caller; no default caller exists.
    pub fn caller_of(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        match &self.caller {
            CallerSource::Configured { caller, .. } => Ok(caller.get()),
            CallerSource::Request => context
                .extensions
                .get::<Parts>()
                .and_then(|parts| parts.extensions.get::<CallerIdentity>())
                .map(|identity| identity.caller.clone())
                .ok_or_else(|| ErrorData::invalid_request("not authenticated", None)),
        }
    }

    /// Reports whether the caller's token is still valid. `None` if it cannot expire or be revoked.
    pub fn standing_of(
        &self,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Option<Arc<dyn AuthStatus>> {
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

impl ProtocolMode {
    pub fn of(context: &RequestContext<RoleServer>) -> Self {
        match context.protocol_version() {
            Some(version) if version.as_str() >= ProtocolVersion::V_2026_07_28.as_str() => Self::Stateless,
            _ => Self::Sessions,
        }
    }
}

impl ServerHandler for GatewayHandler {
    fn get_info(&self) -> ServerConfig {
        #[expect(deprecated, reason = "clients of older protocol versions look for it")]
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
        let McpShared { gate, listings, page_size, .. } = &*self.shared;
        let (tools, next) = listings.page(gate, &caller, cursor.as_deref(), *page_size).map_err(|_| {
            ErrorData::invalid_params("unknown or outdated cursor; list again from the beginning", None)
        })?;
        let mut result = ListToolsResult::with_all_items(tools);
        result.next_cursor = next;
        // Private, because each caller sees other tools.
        if ProtocolMode::of(&context) == ProtocolMode::Stateless {
            result = result.with_ttl_ms(LIST_TTL_MS).with_cache_scope(CacheScope::Private);
        }
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        // Boxed: all handler futures would be as large as this one.
        Box::pin(call_request::call_tool(self, request, context)).await
    }

    #[expect(deprecated, reason = "clients of older protocol versions use it")]
    async fn set_level(
        &self,
        request: rmcp::model::SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if ProtocolMode::of(&context) == ProtocolMode::Stateless {
            return Err(ErrorData::method_not_found::<rmcp::model::SetLevelRequestMethod>());
        }
        self.threshold.set(request.level);
        Ok(())
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.watcher.get_or_init(|| {
            let gate = self.shared.gate.clone();
            AbortOnDropHandle::new(tokio::spawn(notify::notify_of_changes(gate, context.peer)))
        });
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let caller = self.caller_of(context.request_context())?;
        let _slot = self.shared.streams.enter(&caller.quota()).ok_or_else(|| {
            ErrorData::invalid_request("too many open streams; close one, then listen again", None)
        })?;
        let mut changes = self.shared.gate.changes();
        let notify = async {
            while changes.changed().await.is_ok() {
                if context.sink().notify_tool_list_changed().await.is_err() {
                    break;
                }
            }
        };
        // The token is watched during sending too, so a client that does not read cannot delay the end.
        tokio::select! {
            () = until_lapse(self.standing_of(&caller, context.request_context())) => {
                Err(ErrorData::invalid_request(LAPSED, None))
            }
            () = context.cancelled() => Ok(()),
            () = notify => Ok(()),
        }
    }

    // The gateway has no prompts, resources or completions. An empty list would suggest that it could have some.

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

const LAPSED: &str =
    "your token was revoked or has expired, or the settings in `auth` changed; authenticate again";

/// How long clients may cache the list. Listening clients are notified of changes at once.
const LIST_TTL_MS: u64 = 1_000;
