//! Searches by name and content below a directory.

use super::{
    Files,
    access::OpenEntry,
    error::{FileFault, FileReason, quoted},
    grep::letter_case,
    kernel,
    lines::{LineOutput, LineReader, OVERHEAD, OutputBudget, ScanBudget},
    pattern::{LinePattern, NameGlob},
    roots::escapes,
    walk::{TreeWalk, WalkEntry, WalkScope, WalkStep},
};

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct FindOptions {
    /// 0 means all levels; a tree deeper than the cap is then an error.
    pub max_depth: usize,
    /// `None` finds both, and symlinks.
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
    /// 0 means the limit on hits, where the result ends. A larger value fails once there are more hits than the
    /// limit.
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
    ) -> Result<Vec<String>, FileFault> {
        let glob = NameGlob::new(glob)?;
        let start = self.start(asked)?;
        let mut output = LineOutput::new(self.caps.entries, self.caps.output_bytes);
        TreeWalk::new(self, WalkScope::Granted, options.max_depth, asked).run(&start, &mut |entry| {
            let is_wanted = match options.kind {
                None => true,
                Some(EntryKind::File) => entry.kind.is_file(),
                Some(EntryKind::Dir) => entry.kind.is_dir(),
            };
            if is_wanted && glob.matches(entry.name) {
                output.push(self.roots.shown(&entry.path))?;
            }
            Ok(WalkStep::Continue)
        })?;
        Ok(output.lines)
    }

    pub(super) fn hits_below(
        &self,
        asked: &str,
        glob: &str,
        pattern: &str,
        options: SearchOptions,
    ) -> Result<Vec<SearchHit>, FileFault> {
        let glob = NameGlob::new(glob)?;
        let mut search = TreeSearch {
            files: self,
            pattern: self.pattern(pattern, letter_case(options.case_insensitive))?,
            scan: ScanBudget::many_files(self),
            budget: OutputBudget { left: self.caps.output_bytes },
            limit: if options.limit == 0 { self.caps.hits } else { options.limit },
            hits: Vec::new(),
        };
        let start = self.start(asked)?;
        TreeWalk::new(self, WalkScope::Granted, options.max_depth, asked).run(&start, &mut |entry| {
            if entry.kind.is_file() && glob.matches(entry.name) {
                search.look_into(entry)?;
            }
            Ok(if search.hits.len() >= search.limit { WalkStep::Stop } else { WalkStep::Continue })
        })?;
        Ok(search.hits)
    }

    fn start(&self, asked: &str) -> Result<OpenEntry, FileFault> {
        let found = self.look(asked)?.filter(|found| found.metadata.is_dir());
        found.ok_or_else(|| {
            FileFault::new(FileReason::FindNotADirectory, format!("{} is not a folder", quoted(asked)))
        })
    }
}

struct TreeSearch<'f> {
    files: &'f Files,
    pattern: LinePattern<'f>,
    scan: ScanBudget,
    budget: OutputBudget,
    limit: usize,
    hits: Vec<SearchHit>,
}

impl TreeSearch<'_> {
    fn look_into(&mut self, entry: &WalkEntry<'_>) -> Result<(), FileFault> {
        let (hits_before, budget_before) = (self.hits.len(), self.budget.left);
        match self.scan_file(entry) {
            // A file that is not text or no longer exists is skipped.
            Err(fault) if fault.concerns_one_file() || fault.is_refusal() => {
                self.hits.truncate(hits_before);
                self.budget.left = budget_before;
                Ok(())
            }
            scanned => scanned,
        }
    }

    fn scan_file(&mut self, entry: &WalkEntry<'_>) -> Result<(), FileFault> {
        let shown = self.files.roots.shown(&entry.path);
        let open = || kernel::child(entry.folder, entry.name);
        let Some(found) = self.files.admit(&entry.path, &shown, escapes, &open)? else { return Ok(()) };
        let mut lines = LineReader::open(self.files, &found, &shown)?;
        while self.hits.len() < self.limit {
            let Some(line) = lines.next(&mut self.scan)? else { break };
            if !self.pattern.is_match(line)? {
                continue;
            }
            if self.hits.len() >= self.files.caps.hits {
                let message = format!("there are more than {} hits; ask for less", self.files.caps.hits);
                return Err(FileFault::new(FileReason::ResultTooLarge, message));
            }
            self.budget.pay(line.len() + shown.len() + OVERHEAD)?;
            let text = line.to_owned();
            self.hits.push(SearchHit { file: shown.clone(), line: lines.number, text });
        }
        Ok(())
    }
}
