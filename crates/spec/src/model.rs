//! The typed document: one model, `ToolSpec`, for both document kinds. Its values have passed the schema and the
//! checks between fields. It contains no decisions.

mod capability;
mod governance;
mod handler;
mod overrides;
mod param;
mod safety;
mod tool;

pub use capability::{
    ApprovalLevel, ApprovalPatch, AuditPatch, CapabilityPatch, DataClass, DataPatch, EnvironmentMode,
    ExecutionPatch, LabelsPatch, NetworkAccess, NetworkPatch, SandboxKind, Sensitivity, TrustLevel,
};
pub use governance::{Classification, Elevation, Governance, OutputAction, OutputRule, Permissions, Touches};
pub use handler::{
    Argument, ArgumentGroup, CliHandler, CommandOutput, GATEWAY_FILES, GrpcHandler, Handler, HttpHandler,
    McpHandler, NamedTemplate,
};
pub use overrides::{NetworkMode, SandboxOverrides};
pub use param::{Param, ParamType};
pub use safety::{SafetyCapabilities, SafetyCategory, SafetyRuntime, ToolSafety};
pub use tool::{ApprovalMode, Body, HumanInTheLoop, StaticVariable, ToolId, ToolSpec};
