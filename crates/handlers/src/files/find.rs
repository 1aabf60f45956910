//! Where below this folder is it?

use super::{
    Files,
    access::Found,
    error::{Fault, Reason, quoted},
    grep::letter_case,
    kernel,
    lines::{Budget, Lines, OVERHEAD, Output, Scan},
    pattern::{NameGlob, Pattern},
    place::escapes,
    walk::{Entry, Flow, Seen, Walk},
};

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FindOptions {
    /// 0 means all levels; a tree deeper than the cap is then an error.
    pub max_depth: usize,
    /// `None` finds both, and links.
    pub kind: Option<EntryKind>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EntryKind {
    File,
    Dir,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SearchOptions {
    pub case_insensitive: bool,
    /// 0 means all levels; a tree deeper than the cap is then an error.
    pub max_depth: usize,
    /// 0 stands for the cap on hits, where the answer ends. More than the cap fails once there are that many hits.
    pub limit: usize,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SearchHit {
    pub file: String,
    /// Counted from 1.
    pub line: u64,
    pub text: String,
}

impl Files {
    pub(super) fn entries_below(
        &self,
        asked: &str,
        glob: &str,
        options: FindOptions,
    ) -> Result<Vec<String>, Fault> {
        let glob = NameGlob::new(glob)?;
        let start = self.start(asked)?;
        let mut output = Output::new(self.caps.entries, self.caps.output_bytes);
        Walk::new(self, Seen::Granted, options.max_depth, asked).run(&start, &mut |entry| {
            let is_wanted = match options.kind {
                None => true,
                Some(EntryKind::File) => entry.kind.is_file(),
                Some(EntryKind::Dir) => entry.kind.is_dir(),
            };
            if is_wanted && glob.matches(entry.name) {
                output.push(self.roots.shown(&entry.path))?;
            }
            Ok(Flow::GoOn)
        })?;
        Ok(output.lines)
    }

    pub(super) fn hits_below(
        &self,
        asked: &str,
        glob: &str,
        pattern: &str,
        options: SearchOptions,
    ) -> Result<Vec<SearchHit>, Fault> {
        let glob = NameGlob::new(glob)?;
        let mut search = Search {
            files: self,
            pattern: self.pattern(pattern, letter_case(options.case_insensitive))?,
            scan: Scan::many_files(self),
            budget: Budget { left: self.caps.output_bytes },
            limit: if options.limit == 0 { self.caps.hits } else { options.limit },
            hits: Vec::new(),
        };
        let start = self.start(asked)?;
        Walk::new(self, Seen::Granted, options.max_depth, asked).run(&start, &mut |entry| {
            if entry.kind.is_file() && glob.matches(entry.name) {
                search.look_into(entry)?;
            }
            Ok(if search.hits.len() >= search.limit { Flow::Enough } else { Flow::GoOn })
        })?;
        Ok(search.hits)
    }

    fn start(&self, asked: &str) -> Result<Found, Fault> {
        let found = self.look(asked)?.filter(|found| found.metadata.is_dir());
        found.ok_or_else(|| {
            Fault::new(Reason::FindNotADirectory, format!("{} is not a folder", quoted(asked)))
        })
    }
}

struct Search<'f> {
    files: &'f Files,
    pattern: Pattern<'f>,
    scan: Scan,
    budget: Budget,
    limit: usize,
    hits: Vec<SearchHit>,
}

impl Search<'_> {
    fn look_into(&mut self, entry: &Entry<'_>) -> Result<(), Fault> {
        let (hits_before, budget_before) = (self.hits.len(), self.budget.left);
        match self.scan_file(entry) {
            // Not text, or not there any more: as if it were not there.
            Err(fault) if fault.concerns_one_file() || fault.is_refusal() => {
                self.hits.truncate(hits_before);
                self.budget.left = budget_before;
                Ok(())
            }
            scanned => scanned,
        }
    }

    fn scan_file(&mut self, entry: &Entry<'_>) -> Result<(), Fault> {
        let shown = self.files.roots.shown(&entry.path);
        let open = || kernel::child(entry.folder, entry.name);
        let Some(found) = self.files.admit(&entry.path, &shown, escapes, &open)? else { return Ok(()) };
        let mut lines = Lines::open(self.files, &found, &shown)?;
        while self.hits.len() < self.limit {
            let Some(line) = lines.next(&mut self.scan)? else { break };
            if !self.pattern.is_match(line)? {
                continue;
            }
            if self.hits.len() >= self.files.caps.hits {
                let message = format!("there are more than {} hits; ask for less", self.files.caps.hits);
                return Err(Fault::new(Reason::ResultTooLarge, message));
            }
            self.budget.pay(line.len() + shown.len() + OVERHEAD)?;
            let text = line.to_owned();
            self.hits.push(SearchHit { file: shown.clone(), line: lines.number, text });
        }
        Ok(())
    }
}
