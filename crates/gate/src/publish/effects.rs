//! Says what a test run could change for real, before anything runs.

use toolgate_spec::model::{ApprovalMode, Classification};

use crate::live::LiveTool;

/// What a test run of a tool could change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TestEffects {
    /// It can change nothing.
    None,
    /// It writes below the workspace only. A copy of the workspace keeps the real files safe.
    Workspace,
    /// It can change something that no copy protects. The text says what, for a person.
    Beyond(String),
}

impl TestEffects {
    /// By what the policy grants and the document declares. Nothing is run.
    pub fn of(tool: &LiveTool) -> Self {
        let files = &tool.policy.files;
        let base = files.base_path.value.to_string();
        let is_in_workspace =
            base.strip_prefix("$WORKSPACE").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        if files.write.value && !is_in_workspace {
            return Self::Beyond(format!("it writes below `{base}`, not below `$WORKSPACE`"));
        }
        if let Some(acts) = acts(tool)
            && tool.reaches_out()
        {
            return Self::Beyond(format!("{acts}, and it reaches other hosts"));
        }
        if files.write.value { Self::Workspace } else { Self::None }
    }
}

/// Why the tool is taken to act on what it reaches, if it is.
fn acts(tool: &LiveTool) -> Option<String> {
    let spec = &tool.spec;
    if spec.overrides.destructive {
        return Some("it is destructive".to_owned());
    }
    match spec.governance.classification {
        Some(class @ (Classification::Write | Classification::Destructive)) => {
            Some(format!("it is classified `{}`", class.name()))
        }
        _ if spec.approval.mode == ApprovalMode::Required => {
            Some("its author requires an approval for every call".to_owned())
        }
        _ => None,
    }
}
