//! Findings: a problem in a document, its position and a remedy.

use crate::{Code, Pointer, SourceSpan};

/// One problem to report to the author. See `Code` for the meaning of each code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    pub code: Code,
    pub at: Pointer,
    /// Whether to point to the value or to its key.
    pub target: FindingTarget,
    /// Set by `locate`. `None` if the position has no text.
    pub span: Option<SourceSpan>,
    pub message: String,
    pub remedy: String,
    /// A document with this finding is published only after an operator accepted its code.
    pub blocks_publishing: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FindingTarget {
    Key,
    Value,
}

impl Finding {
    pub fn new(code: Code, at: Pointer, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            code,
            at,
            target: FindingTarget::Value,
            span: None,
            message: message.into(),
            remedy: remedy.into(),
            blocks_publishing: false,
        }
    }

    #[must_use]
    pub fn at_key(self) -> Self {
        Self { target: FindingTarget::Key, ..self }
    }

    #[must_use]
    pub fn at_span(self, span: SourceSpan) -> Self {
        Self { span: Some(span), ..self }
    }

    #[must_use]
    pub fn blocking(self) -> Self {
        debug_assert!(self.code.may_block_publishing(), "{}", self.code.name());
        Self { blocks_publishing: true, ..self }
    }

    pub fn is_error(&self) -> bool {
        self.code.severity() == crate::Severity::Error
    }
}
