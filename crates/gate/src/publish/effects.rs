//! Determines what a test run could change, before anything runs.

use toolgate_spec::model::{ApprovalLevel, Body, Classification, Handler};

use crate::live::LiveTool;

/// The changes that a test run of a tool could make.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum TestEffects {
    /// It cannot change anything.
    None,
    /// It writes below the workspace only. A copy of the workspace keeps the real files safe.
    Workspace,
    /// It can change something that no copy protects. The text explains what.
    Beyond(String),
}

impl TestEffects {
    /// Decides by the resolved policy. Runs nothing.
    pub fn of(tool: &LiveTool) -> Self {
        let files = &tool.policy.files;
        if matches!(tool.spec.body, Body::Handler(Handler::Rust)) {
            return match tool.policy.classification.value {
                Classification::Read => Self::None,
                // It is not in a sandbox, so a copy of the workspace would not protect the real one.
                class => Self::Beyond(format!("it is code of this program, classified `{}`", class.name())),
            };
        }
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

/// Why a call may change something on another host, according to the resolved policy.
fn acts(tool: &LiveTool) -> Option<String> {
    let policy = &tool.policy;
    let class = policy.classification.value;
    // The right to write files raises the class to `write` too. A copy of the workspace protects those files.
    let is_raised_by_files =
        policy.files.write.value && tool.spec.governance.classification.is_none_or(|said| said < class);
    match class {
        Classification::Destructive => return Some("it is classified `destructive`".to_owned()),
        Classification::Write if !is_raised_by_files => {
            return Some("it is classified `write`".to_owned());
        }
        Classification::Write | Classification::Read => {}
    }
    match policy.approval.level.value {
        ApprovalLevel::Auto => None,
        level => Some(format!("its calls need an approval (`{}`)", level.name())),
    }
}
