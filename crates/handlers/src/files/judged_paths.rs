//! Checks that a path still leads where it led when the call was judged.
//!
//! The paths of the arguments are judged before anyone is asked, and a person may think for minutes. When the tool
//! uses such a path, it must lead to the place that was shown. Places are compared by their real paths, as policies
//! and people see them. A file that was replaced meanwhile, as every writer does, still counts as the same.

use super::{
    Files,
    error::{FileError, FileFault, FileReason, quoted},
    roots::below,
};

/// A path of the arguments, and its real path when it was judged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JudgedPath {
    /// As written in the arguments.
    pub asked: String,
    /// Absolute, without symlinks.
    pub real: String,
}

/// The same, with the path in the form that is compared.
#[derive(Debug)]
pub(super) struct CleanJudgedPath {
    /// Absolute and clean.
    path: String,
    real: String,
}

impl CleanJudgedPath {
    /// A path below a judged directory must lead into that directory.
    fn leads(&self, path: &str, real: &str) -> bool {
        if self.path == path { self.real == real } else { below(real, &self.real).is_some() }
    }
}

impl Files {
    /// From now on, these paths and those below them must lead where they led when they were judged.
    pub fn restrict_to(mut self, judged: &[JudgedPath]) -> Result<Self, FileError> {
        for JudgedPath { asked, real } in judged {
            let path = self.roots.clean(asked).map_err(|fault| fault.by("safety.fs"))?;
            self.judged.push(CleanJudgedPath { path, real: real.clone() });
        }
        Ok(self)
    }

    /// Rejects a path that now leads elsewhere. `path` is absolute and clean, `real` is its real path.
    pub(super) fn check_judged(&self, path: &str, real: &str, asked: &str) -> Result<(), FileFault> {
        self.check_each(path, asked, |judged| judged.leads(path, real))
    }

    /// Rejects the creation of a directory that is neither on the way to the judged place nor inside it.
    pub(super) fn check_way(&self, path: &str, folder: &str, asked: &str) -> Result<(), FileFault> {
        self.check_each(path, asked, |judged| {
            below(&judged.real, folder).is_some() || below(folder, &judged.real).is_some()
        })
    }

    fn check_each(
        &self,
        path: &str,
        asked: &str,
        holds: impl Fn(&CleanJudgedPath) -> bool,
    ) -> Result<(), FileFault> {
        // A judgement of the path itself takes precedence over one of a directory around it.
        let is_itself = |judged: &&CleanJudgedPath| judged.path == path;
        let mut about: Vec<&CleanJudgedPath> = self.judged.iter().filter(is_itself).collect();
        let is_below = about.is_empty();
        if is_below {
            about = self.judged.iter().filter(|judged| below(path, &judged.path).is_some()).collect();
        }
        if about.is_empty() || about.iter().any(|judged| holds(judged)) {
            return Ok(());
        }
        if is_below && about.iter().any(|judged| self.is_where_it_was(judged)) {
            let message = format!(
                "{} leads out of a folder that the arguments name; pass the path it leads to",
                quoted(asked)
            );
            return Err(FileFault::new(FileReason::PathOutsideArgument, message));
        }
        let message =
            format!("{} leads elsewhere than when this call was checked; make the call again", quoted(asked));
        Err(FileFault::new(FileReason::PathChanged, message))
    }

    /// In that case nothing was replaced, and a symlink inside leads out.
    fn is_where_it_was(&self, judged: &CleanJudgedPath) -> bool {
        self.look(&judged.path).is_ok_and(|found| found.is_some())
    }
}
