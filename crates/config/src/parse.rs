//! The parsing pipeline: text → YAML value → overrides → checks and defaults → rules between keys → typed `Config`.

use std::{
    fs::File,
    io::{self, Read as _},
    path::Path,
};

use serde_json::{Map, Value};
use toolgate_spec::{Finding, Format, LineIndex, Pointer, SourcePosition, value_from_text};

use crate::{
    entry::{ConfigEntry, ConfigOrigin},
    error::ConfigError,
    fault::{ConfigFault, FaultTarget, Faults, positions},
    keys::ROOT,
    model::{Config, default_key_file},
    overlay::{Overlay, Overrides},
    paths,
    permissions::Writable,
    read::{ConfigReader, Leaf, ValueSource},
    rules,
    shape::{Complaint, shown},
};

impl Config {
    /// Parses a text. Relative paths start at `base`, the directory of the file.
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
        let ConfigReader { mut faults, leaves, tree } = ConfigReader::read(ROOT, &document);
        rules::check(&tree, base, &mut faults);
        if faults.count() > 0 {
            return Err(origins.errors(faults));
        }
        // INVARIANT: the tree is complete. This fails only if the table and the model disagree, and then the gateway must not start.
        let mut config: Self = serde_json::from_value(tree).map_err(|error| {
            let problem = format!("internal error: the table of keys does not match the model: {error}");
            vec![whole_file(Complaint::new(problem, "report this as a bug"))]
        })?;
        paths::resolve_all(&mut config, base);
        if config.secrets.key_file.is_none() {
            config.secrets.key_file = default_key_file(env);
        }
        config.entries = origins.entries(leaves);
        Ok(config)
    }

    /// Reads a file; relative paths start at its directory.
    pub fn load(
        path: &Path,
        env: &dyn Fn(&str) -> Option<String>,
        overrides: &Overrides,
    ) -> Result<Self, Vec<ConfigError>> {
        let unreadable = |error: &io::Error| {
            let problem = format!("cannot read `{}`: {error}", shown(&path.to_string_lossy()));
            let remedy = match error.kind() {
                io::ErrorKind::NotFound => {
                    "run `toolgate init` to create one, or name another with `--config`"
                }
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

    /// Every key with its value and origin, in the order of the file that `toolgate init` writes.
    pub fn entries(&self) -> &[ConfigEntry] {
        &self.entries
    }
}

/// Parses the file into an object. A file that has only comments is an empty object.
fn document(text: &str) -> Result<Map<String, Value>, ConfigError> {
    if text.len() > MAX_BYTES {
        let problem = format!("the file has {} bytes, the limit is {MAX_BYTES}", text.len());
        return Err(whole_file(Complaint::new(problem, "shorten it")));
    }
    if text.trim().is_empty() {
        return Err(whole_file(Complaint::new("the file is empty", "run `toolgate init` to create one")));
    }
    match value_from_text(text, Format::Yaml) {
        Ok(Value::Object(document)) => Ok(document),
        Ok(Value::Null) => Ok(Map::new()),
        Ok(_) => {
            let complaint = Complaint::new("the file is not a mapping of keys", "start it with `version: 1`");
            Err(whole_file(complaint))
        }
        Err(finding) => Err(unreadable_text(text, finding)),
    }
}

fn unreadable_text(text: &str, finding: Finding) -> ConfigError {
    // The YAML reader is shared with tool documents; replace its remedies that mention tools.
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
    ConfigError { origin: ConfigOrigin::File, position: None, at: Pointer::root(), problem, remedy }
}

fn read_bounded(path: &Path) -> io::Result<String> {
    // Check before opening: opening a pipe blocks until another process writes to it.
    if !std::fs::metadata(path)?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    let most = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    File::open(path)?.take(most).read_to_string(&mut text)?;
    Ok(text)
}

/// Finds the source of each value: the file or an override.
struct Origins<'text> {
    text: &'text str,
    overlays: Vec<Overlay>,
}

impl Origins<'_> {
    /// Sorted by position in the file; errors of overrides come last.
    fn errors(&self, faults: Faults) -> Vec<ConfigError> {
        let count = faults.count();
        let kept = faults.into_kept();
        let sources = self.sources(kept.iter().map(|fault| (&fault.at, fault.target)));
        let error = |(fault, (origin, position)): (ConfigFault, (ConfigOrigin, Option<SourcePosition>))| {
            let Complaint { problem, remedy } = fault.complaint;
            // A rule between keys may report a key that the file does not set.
            let is_unset = origin == ConfigOrigin::File && position.is_none();
            let origin = if is_unset { ConfigOrigin::Default } else { origin };
            ConfigError { origin, position, at: fault.at, problem, remedy }
        };
        let mut errors: Vec<_> = kept.into_iter().zip(sources).map(error).collect();
        errors.sort_by_key(|error| (error.position.is_none(), error.position));
        if count > errors.len() {
            let problem = format!("{} more errors are not shown", count - errors.len());
            errors.push(whole_file(Complaint::new(problem, "fix the reported errors and try again")));
        }
        errors
    }

    fn entries(&self, leaves: Vec<Leaf>) -> Vec<ConfigEntry> {
        let sources = self.sources(leaves.iter().map(|leaf| (&leaf.at, FaultTarget::Key)));
        let entry = |(leaf, (origin, position)): (Leaf, _)| ConfigEntry {
            key: leaf.at.tokens().join("."),
            value: leaf.value,
            origin: if leaf.given == ValueSource::ByDefault { ConfigOrigin::Default } else { origin },
            position,
            is_secret: leaf.is_secret,
        };
        leaves.into_iter().zip(sources).map(entry).collect()
    }

    fn sources<'p>(
        &self,
        pointers: impl Iterator<Item = (&'p Pointer, FaultTarget)> + Clone,
    ) -> Vec<(ConfigOrigin, Option<SourcePosition>)> {
        let positions = positions(self.text, pointers.clone());
        let source = |((at, _), position): ((&Pointer, _), _)| match self.overlay(at) {
            Some(origin) => (origin, None),
            None => (ConfigOrigin::File, position),
        };
        pointers.zip(positions).map(source).collect()
    }

    /// The last override of a key wins.
    fn overlay(&self, at: &Pointer) -> Option<ConfigOrigin> {
        self.overlays
            .iter()
            .rev()
            .find(|overlay| overlay.pointer() == at.as_str())
            .map(|overlay| overlay.origin)
    }
}

/// About a hundred times the size of the file that `toolgate init` writes.
const MAX_BYTES: usize = 1 << 20;

#[cfg(test)]
mod tests;
