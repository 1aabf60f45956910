//! Errors of file functions, with the reasons that tools know.

use std::{error::Error, fmt, io};

use rustix::io::Errno;

/// A denial or failure as the tool sees it. Paths are shown as the tool wrote them.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FileError {
    pub class: FileErrorClass,
    /// `safety.fs.readText`
    pub helper: &'static str,
    /// Stable: tools and journals compare it.
    pub reason: &'static str,
    pub message: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FileErrorClass {
    /// The arguments are invalid.
    InvalidInput,
    /// The operation failed, or the data is too large.
    HelperRuntime,
    /// The policy denied it.
    Security,
}

impl FileErrorClass {
    pub const fn code(self) -> &'static str {
        match self {
            Self::InvalidInput => "INVALID_INPUT",
            Self::HelperRuntime => "HELPER_RUNTIME",
            Self::Security => "SECURITY",
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.helper, self.message)
    }
}

impl Error for FileError {}

/// An error before the name of the function is added.
#[derive(Debug)]
pub(super) struct FileFault {
    pub reason: FileReason,
    message: String,
}

impl FileFault {
    pub fn new(reason: FileReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// A kernel error for `path`, in words that reveal nothing about the host.
    pub fn io(path: &str, error: &io::Error) -> Self {
        let quoted = quoted(path);
        let message = match error.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOENT) => format!("{quoted} does not exist"),
            Some(Errno::NOTDIR) => format!("{quoted} leads through something that is not a folder"),
            Some(Errno::ACCESS | Errno::PERM) => {
                format!("{quoted} is closed to the gateway; its owner or mode has to change")
            }
            Some(Errno::NOSPC | Errno::DQUOT) => format!("{quoted} does not fit; the disk is full"),
            Some(Errno::ROFS) => format!("{quoted} is on a disk that is read-only"),
            Some(Errno::ISDIR) => format!("{quoted} is a folder"),
            Some(Errno::NOTEMPTY | Errno::EXIST) => format!("{quoted} is a folder that is not empty"),
            Some(Errno::INVAL) => format!("{quoted} cannot be placed there"),
            Some(Errno::XDEV) => format!("{quoted} is on another disk; copy it and delete the original"),
            _ => format!("{quoted}: {}", error.kind()),
        };
        Self::new(FileReason::Io, message)
    }

    pub fn by(self, helper: &'static str) -> FileError {
        let (class, reason) = self.reason.class_and_slug();
        FileError { class, helper, reason, message: self.message }
    }

    /// Whether another file might succeed, so a search can continue.
    pub const fn concerns_one_file(&self) -> bool {
        matches!(
            self.reason,
            FileReason::InvalidPath | FileReason::Io | FileReason::LineTooLong | FileReason::NotAFile
        )
    }

    pub const fn is_refusal(&self) -> bool {
        matches!(self.reason.class_and_slug().0, FileErrorClass::Security)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum FileReason {
    ContentTooLarge,
    CopySourceNotFile,
    CutFieldsRequired,
    CutInvalidDelimiter,
    DeleteDirNotADirectory,
    DeleteDirWorkspaceRoot,
    DeleteIsDirectory,
    EditAmbiguous,
    EditFileMissing,
    EditNoMatch,
    EditOldRequired,
    FileTooLarge,
    FindInvalidGlob,
    FindNotADirectory,
    GrantUnusable,
    GrepInvalidPattern,
    GrepPatternRequired,
    HostUnsupported,
    Interrupted,
    InvalidPath,
    Io,
    LineTooLong,
    MoveSourceMissing,
    MoveWorkspaceRoot,
    NotADirectory,
    NotAFile,
    PathBlocked,
    PathChanged,
    PathEscapesBase,
    PathNotAllowed,
    PathOutsideArgument,
    PathRequired,
    ReadNotGranted,
    ResultTooLarge,
    ScanTooLarge,
    TreeTooDeep,
    WriteNotGranted,
    WriteOutsideWorkspace,
    WriteThroughSymlink,
}

impl FileReason {
    const fn class_and_slug(self) -> (FileErrorClass, &'static str) {
        use FileErrorClass::{HelperRuntime, InvalidInput, Security};
        match self {
            Self::ContentTooLarge => (InvalidInput, "content-too-large"),
            Self::CopySourceNotFile => (InvalidInput, "copy-source-not-file"),
            Self::CutFieldsRequired => (InvalidInput, "cut-fields-required"),
            Self::CutInvalidDelimiter => (InvalidInput, "cut-invalid-delimiter"),
            Self::DeleteDirNotADirectory => (InvalidInput, "deletedir-not-a-directory"),
            Self::DeleteDirWorkspaceRoot => (Security, "deletedir-workspace-root"),
            Self::DeleteIsDirectory => (InvalidInput, "delete-is-directory"),
            Self::EditAmbiguous => (InvalidInput, "edit-ambiguous"),
            Self::EditFileMissing => (InvalidInput, "edit-file-missing"),
            Self::EditNoMatch => (InvalidInput, "edit-no-match"),
            Self::EditOldRequired => (InvalidInput, "edit-old-required"),
            Self::FileTooLarge => (HelperRuntime, "file-too-large"),
            Self::FindInvalidGlob => (InvalidInput, "find-invalid-glob"),
            Self::FindNotADirectory => (InvalidInput, "find-not-a-directory"),
            Self::GrantUnusable => (HelperRuntime, "grant-unusable"),
            Self::GrepInvalidPattern => (InvalidInput, "grep-invalid-pattern"),
            Self::GrepPatternRequired => (InvalidInput, "grep-pattern-required"),
            Self::HostUnsupported => (HelperRuntime, "host-unsupported"),
            Self::Interrupted => (HelperRuntime, "interrupted"),
            Self::InvalidPath => (InvalidInput, "invalid-path"),
            Self::Io => (HelperRuntime, "io"),
            Self::LineTooLong => (HelperRuntime, "line-too-long"),
            Self::MoveSourceMissing => (InvalidInput, "move-source-missing"),
            Self::MoveWorkspaceRoot => (Security, "move-workspace-root"),
            Self::NotADirectory => (InvalidInput, "not-a-directory"),
            Self::NotAFile => (InvalidInput, "not-a-file"),
            Self::PathBlocked => (Security, "path-blocked"),
            Self::PathChanged => (Security, "path-changed"),
            Self::PathEscapesBase => (Security, "path-escapes-base"),
            Self::PathNotAllowed => (Security, "path-not-allowed"),
            Self::PathOutsideArgument => (Security, "path-outside-argument"),
            Self::PathRequired => (InvalidInput, "path-required"),
            Self::ReadNotGranted => (Security, "read-not-granted"),
            Self::ResultTooLarge => (HelperRuntime, "result-too-large"),
            Self::ScanTooLarge => (HelperRuntime, "scan-too-large"),
            Self::TreeTooDeep => (HelperRuntime, "tree-too-deep"),
            Self::WriteNotGranted => (Security, "write-not-granted"),
            Self::WriteOutsideWorkspace => (Security, "write-outside-workspace"),
            Self::WriteThroughSymlink => (Security, "write-through-symlink"),
        }
    }
}

/// Quotes user text on one line. Long text is not shown in part, because a cut secret would not be masked.
pub(super) fn quoted(text: &str) -> String {
    match text.chars().count() {
        ..=LONGEST_SHOWN => format!("`{}`", text.escape_debug()),
        long => format!("`({long} characters)`"),
    }
}

const LONGEST_SHOWN: usize = 1_000;
