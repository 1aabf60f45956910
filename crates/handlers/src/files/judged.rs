//! Does a path still lead where it led when the call was judged?
//!
//! What the arguments name is judged before anybody is asked, and a person may think for minutes. Where a tool then uses such
//! a path, it must reach the place that was judged and shown. Places are compared by their real names, since that is what
//! policies and people judge: a file that was written anew meanwhile, which every writer does by replacing it, is still
//! the file of that name.

use super::{
    Files,
    error::{Fault, FileError, Reason, quoted},
    place::below,
};

/// A path of the arguments, and where it led when it was judged.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JudgedPath {
    /// As it stands in the arguments.
    pub asked: String,
    /// Absolute, without links.
    pub real: String,
}

/// The same, under the one name by which paths of a tool are compared.
#[derive(Debug)]
pub(super) struct Judged {
    /// Absolute and clean.
    path: String,
    real: String,
}

impl Judged {
    /// What lies below a judged folder may be anywhere in it, and nowhere else.
    fn leads(&self, path: &str, real: &str) -> bool {
        if self.path == path { self.real == real } else { below(real, &self.real).is_some() }
    }
}

impl Files {
    /// From here on these paths, and those below them, are used only where they led when they were judged.
    pub fn keep_to(mut self, judged: &[JudgedPath]) -> Result<Self, FileError> {
        for JudgedPath { asked, real } in judged {
            let path = self.roots.clean(asked).map_err(|fault| fault.by("safety.fs"))?;
            self.judged.push(Judged { path, real: real.clone() });
        }
        Ok(self)
    }

    /// Refuses a path that leads elsewhere by now. `path` is absolute and clean, `real` is what it leads to.
    pub(super) fn check_judged(&self, path: &str, real: &str, asked: &str) -> Result<(), Fault> {
        self.check_each(path, asked, |judged| judged.leads(path, real))
    }

    /// Refuses to make a folder for this path that is neither on the way to its judged place nor in it.
    pub(super) fn check_way(&self, path: &str, folder: &str, asked: &str) -> Result<(), Fault> {
        self.check_each(path, asked, |judged| {
            below(&judged.real, folder).is_some() || below(folder, &judged.real).is_some()
        })
    }

    fn check_each(&self, path: &str, asked: &str, holds: impl Fn(&Judged) -> bool) -> Result<(), Fault> {
        // What was said of the path itself counts more than what was said of a folder around it.
        let is_itself = |judged: &&Judged| judged.path == path;
        let mut about: Vec<&Judged> = self.judged.iter().filter(is_itself).collect();
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
            return Err(Fault::new(Reason::PathOutsideArgument, message));
        }
        let message =
            format!("{} leads elsewhere than when this call was checked; make the call again", quoted(asked));
        Err(Fault::new(Reason::PathChanged, message))
    }

    /// Then nothing was exchanged, and what leads out of it is a link in it.
    fn is_where_it_was(&self, judged: &Judged) -> bool {
        self.look(&judged.path).is_ok_and(|found| found.is_some())
    }
}
