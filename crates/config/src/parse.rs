//! The whole way: text → value → overlaid → checked and completed → rules → typed, with every fault and every origin placed.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use serde_json::{Map, Value};
use toolgate_spec::{Finding, Format, LineIndex, Pointer, Position, value_from_text};

use crate::{
    entry::{Entry, Origin},
    error::ConfigError,
    fault::{Fault, Faults, Target, positions},
    keys::ROOT,
    model::Config,
    overlay::{Overlay, Overrides},
    paths,
    permissions::Writable,
    read::{Given, Leaf, Reader},
    rules,
    shape::{Complaint, shown},
};

impl Config {
    /// Reads a text. Relative paths begin at `base`, the folder of the file.
    pub fn parse(
        text: &str,
        base: &Path,
        env: &dyn Fn(&str) -> Option<String>,
        overrides: &Overrides,
    ) -> Result<Self, Vec<ConfigError>> {
        let mut document = document(text).map_err(|error| vec![error])?;
        let overlays = Overlay::gather(env, overrides);
        for overlay in &overlays {
            overlay.lay_over(&mut document);
        }
        let origins = Origins { text, overlays };
        let Reader { mut faults, leaves, tree } = Reader::read(ROOT, &document);
        rules::check(&tree, base, &mut faults);
        if faults.count() > 0 {
            return Err(origins.errors(faults));
        }
        // INVARIANT: the tree is complete, so this fails only where table and model disagree; then nothing runs.
        let mut config: Self = serde_json::from_value(tree).map_err(|error| {
            let problem = format!("our own table of keys does not fit: {error}");
            vec![whole_file(Complaint::new(problem, "report this; it is our fault"))]
        })?;
        paths::resolve_all(&mut config, base);
        config.entries = origins.entries(leaves);
        Ok(config)
    }

    /// Reads a file; relative paths begin at its folder.
    pub fn load(
        path: &Path,
        env: &dyn Fn(&str) -> Option<String>,
        overrides: &Overrides,
    ) -> Result<Self, Vec<ConfigError>> {
        let unreadable = |error: &io::Error| {
            let problem = format!("`{}` cannot be read: {error}", shown(&path.to_string_lossy()));
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => "`toolgate init` writes one; `--config` names another",
                _ => "make it a readable file of UTF-8 text",
            };
            vec![whole_file(Complaint::new(problem, remedy))]
        };
        let file = std::path::absolute(path).map_err(|error| unreadable(&error))?;
        let text = read_bounded(&file).map_err(|error| unreadable(&error))?;
        let base = file.parent().unwrap_or(&file);
        let config = Self { file: Some(file.clone()), ..Self::parse(&text, base, env, overrides)? };
        let refused = config.writable_by_others().into_iter().filter(Writable::is_refused);
        let refused: Vec<ConfigError> =
            refused.map(|one| whole_file(Complaint::new(one.problem(), one.remedy()))).collect();
        if refused.is_empty() { Ok(config) } else { Err(refused) }
    }

    /// Every key with its value and who set it, in the order of the file that `toolgate init` writes.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }
}

/// What the file says, as an object; a file of nothing but comments says nothing.
fn document(text: &str) -> Result<Map<String, Value>, ConfigError> {
    if text.len() > MAX_BYTES {
        let problem = format!("the file has {} bytes; at most {MAX_BYTES} are read", text.len());
        return Err(whole_file(Complaint::new(problem, "make it shorter")));
    }
    if text.trim().is_empty() {
        return Err(whole_file(Complaint::new(
            "the file is empty",
            "`toolgate init` writes one to start from",
        )));
    }
    match value_from_text(text, Format::Yaml) {
        Ok(Value::Object(document)) => Ok(document),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => {
            let complaint = Complaint::new("the file is not a list of keys", "begin it with `version: 1`");
            Err(whole_file(complaint))
        }
        Err(finding) => Err(unreadable_text(text, finding)),
    }
}

fn unreadable_text(text: &str, finding: Finding) -> ConfigError {
    // The reader is that of tool documents, and some of its advice is about tools.
    let remedy = if finding.remedy.contains("tool") {
        "write one YAML document of keys and values"
    } else {
        &finding.remedy
    };
    let position = finding.span.map(|span| LineIndex::new(text).position(span.start));
    ConfigError { position, ..whole_file(Complaint::new(finding.message, remedy)) }
}

fn whole_file(complaint: Complaint) -> ConfigError {
    let Complaint { problem, remedy } = complaint;
    ConfigError { origin: Origin::File, position: None, at: Pointer::root(), problem, remedy }
}

fn read_bounded(path: &Path) -> io::Result<String> {
    // Before opening: opening a pipe waits for somebody to write into it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let mut text = String::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}

/// Knows who set what.
struct Origins<'text> {
    text: &'text str,
    overlays: Vec<Overlay>,
}

impl Origins<'_> {
    /// In the order of the file; what did not come from there is last.
    fn errors(&self, faults: Faults) -> Vec<ConfigError> {
        let count = faults.count();
        let kept = faults.into_kept();
        let places = self.places(kept.iter().map(|fault| (&fault.at, fault.target)));
        let error = |(fault, (origin, position)): (Fault, (Origin, Option<Position>))| {
            let Complaint { problem, remedy } = fault.complaint;
            // A rule between keys may accuse one that the file does not name.
            let is_silent = origin == Origin::File && position.is_none();
            let origin = if is_silent { Origin::Default } else { origin };
            ConfigError { origin, position, at: fault.at, problem, remedy }
        };
        let mut errors: Vec<_> = kept.into_iter().zip(places).map(error).collect();
        errors.sort_by_key(|error| (error.position.is_none(), error.position));
        if count > errors.len() {
            let problem = format!("{} more faults are left out", count - errors.len());
            errors.push(whole_file(Complaint::new(problem, "mend what is reported and try again")));
        }
        errors
    }

    fn entries(&self, leaves: Vec<Leaf>) -> Vec<Entry> {
        let places = self.places(leaves.iter().map(|leaf| (&leaf.at, Target::Key)));
        let entry = |(leaf, (origin, position)): (Leaf, _)| Entry {
            key: leaf.at.tokens().join("."),
            value: leaf.value,
            origin: if leaf.given == Given::ByDefault { Origin::Default } else { origin },
            position,
            is_secret: leaf.is_secret,
        };
        leaves.into_iter().zip(places).map(entry).collect()
    }

    fn places<'p>(
        &self,
        pointers: impl Iterator<Item = (&'p Pointer, Target)> + Clone,
    ) -> Vec<(Origin, Option<Position>)> {
        let positions = positions(self.text, pointers.clone());
        let place = |((at, _), position): ((&Pointer, _), _)| match self.overlay(at) {
            Some(origin) => (origin, None),
            None => (Origin::File, position),
        };
        pointers.zip(positions).map(place).collect()
    }

    /// The last one wins.
    fn overlay(&self, at: &Pointer) -> Option<Origin> {
        self.overlays
            .iter()
            .rev()
            .find(|overlay| overlay.pointer() == at.as_str())
            .map(|overlay| overlay.origin)
    }
}

/// The file that `toolgate init` writes has a hundredth of this.
const MAX_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests;
