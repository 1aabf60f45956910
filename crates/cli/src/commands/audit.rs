//! Reads, queries and verifies the journal, and writes and checks receipts.

mod line;

use std::{
    collections::VecDeque,
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    str::FromStr,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use toolgate::{Config, JournalOwner, find_rollback, open_state};
use toolgate_audit::{
    ClockBehind, JournalError, PublicKey, Receipt, Record, RecordPosition, Report, TimeRange, read,
    receipt_for, verify, verify_list, verify_receipt,
};
use toolgate_config::Overrides;

use crate::{
    CommandExit, Failure,
    args::{AuditArgs, AuditCommand, OutputFormat},
    report::counted,
    terminal::{self, Terminal, visible},
    time,
};

pub fn run(args: &AuditArgs, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    // Checking a receipt needs a key but no gateway.
    if let AuditCommand::Receipt { call, check: true, key, format } = &args.command {
        return check_receipt(Path::new(call), key.as_deref(), *format, terminal);
    }
    let config = args.config.load(&Overrides::default())?;
    let folders = journals(&config.state);
    // `verify` reports missing journals itself.
    if folders.is_empty() && !matches!(args.command, AuditCommand::Verify { .. }) {
        return Err(no_journal(&config.state));
    }
    match &args.command {
        AuditCommand::Verify { expect, key, sealed, format } => {
            let key = match key {
                Some(key) => Some(trusted_key(key)?),
                None => own_key(&config.state)?,
            };
            let expect = expect.as_deref().map(parsed::<RecordPosition>).transpose()?;
            let verified = Verified::new(&config.state, &folders, key, expect);
            verified.report(&config.state, *format, terminal)?;
            if !verified.has_key {
                Terminal::note(NO_KEY);
            }
            let is_good = verified.is_clean()
                && (verified.is_sealed() || !sealed)
                && is_state_up_to_date(&config, terminal)?;
            Ok(if is_good { CommandExit::Clean } else { CommandExit::Findings })
        }
        AuditCommand::Tail { lines, format } => tail(&folders, *lines, *format, terminal),
        AuditCommand::Query { tool, caller, decision, stage, reason, call, from, to, format } => {
            let wanted = RecordQuery { tool, caller, decision, stage, reason, call };
            query(&folders, &wanted, days(from.as_deref(), to.as_deref())?, *format, terminal)
        }
        AuditCommand::Export { from, to } => {
            export(&folders, days(from.as_deref(), to.as_deref())?, terminal)
        }
        AuditCommand::Receipt { call, .. } => write_receipt(&folders, call, terminal),
    }
}

/// Checks that the state has no tools or tokens that were withdrawn according to the journal. Changes nothing.
fn is_state_up_to_date(config: &Config, terminal: &mut Terminal) -> Result<bool, Failure> {
    let file = config.state.join("state.db");
    if !file.exists() {
        return Ok(true);
    }
    let failure = |error: String| Failure::at(&file, error);
    let state = open_state(config).map_err(|error| failure(error.to_string()))?;
    let rollback = find_rollback(&config.state, &state).map_err(|error| failure(error.to_string()))?;
    if rollback.is_empty() {
        return Ok(true);
    }
    terminal.flush()?;
    Terminal::note(&format!(
        "state.db is older than the journal, where these are withdrawn: {}; the next start of the gateway withdraws them again",
        visible(&rollback.describe())
    ));
    Ok(false)
}

/// The journal directories, the gateway's first one first. Each concurrent writer has its own.
fn journals(state: &Path) -> Vec<PathBuf> {
    let below = fs::read_dir(state).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_journal = |path: &PathBuf| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().starts_with(JournalOwner::Gateway.folder()))
            && path.is_dir()
    };
    let mut folders: Vec<PathBuf> = below.filter(is_journal).collect();
    folders.sort();
    folders
}

fn no_journal(state: &Path) -> Failure {
    if state.join("keys/journal.key").exists() {
        let shown = visible(&state.to_string_lossy()).into_owned();
        return Failure::Findings(format!(
            "`{shown}`: there is a journal key but no journal; it was removed, restore it from a backup"
        ));
    }
    Failure::at(state, "there is no journal yet; the first call creates it")
}

/// The result of verifying all journals.
struct Verified {
    journals: Vec<(PathBuf, Report)>,
    /// `None` if the journals are older than the list of journals.
    list: Option<Report>,
    /// Whether a trusted key is known. Without one, anyone could have signed with a new key.
    has_key: bool,
}

impl Verified {
    fn new(
        state: &Path,
        folders: &[PathBuf],
        key: Option<PublicKey>,
        expect: Option<RecordPosition>,
    ) -> Self {
        let journals: Vec<(PathBuf, Report)> = folders
            .iter()
            .enumerate()
            // `--expect` is about the gateway's first journal.
            .map(|(number, folder)| (folder.clone(), verify(folder, key, expect.filter(|_| number == 0))))
            .collect();
        let list = verify_list(state, key, &journals);
        Self { journals, list, has_key: key.is_some() }
    }

    fn is_clean(&self) -> bool {
        self.has_key && self.journals.iter().map(|(_, report)| report).chain(&self.list).all(Report::is_clean)
    }

    /// Whether all records are signed. Anyone with write access could have changed unsigned ones.
    fn is_sealed(&self) -> bool {
        self.journals.iter().all(|(_, report)| report.unsealed == 0)
    }

    fn report(&self, state: &Path, format: OutputFormat, terminal: &mut Terminal) -> Result<(), Failure> {
        match format {
            OutputFormat::Json => terminal.data(self.to_json()?),
            OutputFormat::Text => self.print(state, terminal)?,
        }
        match &self.list {
            Some(_) => Ok(()),
            // An empty directory is not a journal.
            None if self.journals.iter().all(|(_, report)| is_empty(report)) => Err(no_journal(state)),
            None => {
                Terminal::note(
                    "these journals are older than the list of journals, so a missing journal cannot be detected; \
                     the next start of the gateway creates the list",
                );
                Ok(())
            }
        }
    }

    fn print(&self, state: &Path, terminal: &mut Terminal) -> Result<(), Failure> {
        for (folder, report) in &self.journals {
            let end = if report.closed { "closed" } else { "not closed" };
            let (records, checkpoints) =
                (number(report.records, "record"), number(report.checkpoints, "checkpoint"));
            print_report(folder, report, &format!("{records}, {checkpoints}, {end}"), terminal)?;
            if report.unsealed > 0 {
                writeln!(terminal, "  {}", unsigned(report.unsealed))?;
            }
            if report.clock_behind.records > 0 {
                writeln!(terminal, "  {}", clock_behind(report.clock_behind))?;
            }
        }
        let Some(list) = &self.list else { return Ok(()) };
        let size = format!("{} listed", number(list.records, "journal"));
        print_report(&state.join("journals.jsonl"), list, &size, terminal)
    }

    fn to_json(&self) -> Result<Value, Failure> {
        let mut journals = Vec::new();
        for (folder, report) in &self.journals {
            let mut journal = serde_json::to_value(report)?;
            if let Some(fields) = journal.as_object_mut() {
                fields.insert("folder".to_owned(), Value::from(folder.to_string_lossy()));
            }
            journals.push(journal);
        }
        let (clean, sealed) = (self.is_clean(), self.is_sealed());
        Ok(json!({ "clean": clean, "sealed": sealed, "journals": journals, "list": self.list }))
    }
}

fn unsigned(records: u64) -> String {
    let (what, are) = if records == 1 { ("record", "is") } else { ("records", "are") };
    format!(
        "the last {records} {what} {are} not signed yet: anyone with write access could have changed that"
    )
}

fn clock_behind(behind: ClockBehind) -> String {
    let ClockBehind { records, first, last, seconds } = behind;
    let span = time::rounded(Duration::from_secs(seconds));
    let what = if records == 1 { "record was" } else { "records were" };
    format!(
        "note: {records} {what} written while the system clock was up to {span} behind an earlier record \
         (records {first} to {last}); `wallClock` has the real time"
    )
}

fn is_empty(report: &Report) -> bool {
    report.records == 0 && report.is_clean()
}

fn number(count: impl TryInto<usize>, noun: &str) -> String {
    counted(count.try_into().unwrap_or(usize::MAX), noun)
}

fn print_report(path: &Path, report: &Report, size: &str, terminal: &mut Terminal) -> Result<(), Failure> {
    let (good, bad) = (terminal.palette.good, terminal.palette.error);
    let name = visible(&path.to_string_lossy()).into_owned();
    if report.is_clean() {
        writeln!(terminal, "{good}intact{good:#}   {name}: {size}")?;
    } else {
        writeln!(terminal, "{bad}CHANGED{bad:#}  {name}: {size}")?;
    }
    for finding in &report.findings {
        writeln!(terminal, "  {}", visible(&finding.to_string()))?;
    }
    if let Some(last) = report.last {
        writeln!(terminal, "  ends at {last}")?;
    }
    Ok(())
}

fn tail(
    folders: &[PathBuf],
    lines: usize,
    format: OutputFormat,
    terminal: &mut Terminal,
) -> Result<CommandExit, Failure> {
    let mut newest: Vec<(String, Record)> = Vec::new();
    for folder in folders {
        let mut last: VecDeque<Record> = VecDeque::new();
        for record in records(folder, TimeRange::default())? {
            last.push_back(record?);
            if last.len() > lines {
                last.pop_front();
            }
        }
        newest.extend(in_order(last));
    }
    newest.sort_by(|(a, _), (b, _)| a.cmp(b));
    let shown = newest.iter().skip(newest.len().saturating_sub(lines)).map(|(_, record)| record);
    print_records(shown, format, terminal)
}

fn print_records<'r>(
    records: impl Iterator<Item = &'r Record>,
    format: OutputFormat,
    terminal: &mut Terminal,
) -> Result<CommandExit, Failure> {
    match format {
        OutputFormat::Json => {
            let records: Vec<Value> = records.map(serde_json::to_value).collect::<Result<_, _>>()?;
            terminal.data(json!({ "records": records }));
        }
        OutputFormat::Text => {
            for record in records {
                line::print(record, terminal)?;
            }
        }
    }
    Ok(CommandExit::Clean)
}

/// Adds a sort time to the records of one journal: the real time, but never later than that of a following record.
/// Otherwise records from before a clock was set back would stay the newest.
fn in_order(records: VecDeque<Record>) -> Vec<(String, Record)> {
    let mut ordered: Vec<(String, Record)> = Vec::new();
    for record in records.into_iter().rev() {
        let real = record.real_time();
        let key = match ordered.last() {
            Some((later, _)) if later.as_str() < real => later.clone(),
            _ => real.to_owned(),
        };
        ordered.push((key, record));
    }
    ordered.reverse();
    ordered
}

struct RecordQuery<'a> {
    tool: &'a Option<String>,
    caller: &'a Option<String>,
    decision: &'a Option<String>,
    stage: &'a Option<String>,
    reason: &'a Option<String>,
    call: &'a Option<String>,
}

impl RecordQuery<'_> {
    fn fits(&self, entry: &Value) -> bool {
        let is = |wanted: &Option<String>, pointers: &[&str]| {
            wanted.as_deref().is_none_or(|wanted| {
                pointers.iter().any(|at| entry.pointer(at).and_then(Value::as_str) == Some(wanted))
            })
        };
        is(self.tool, &["/tool/name"])
            // In records of calls the caller is an object.
            && is(self.caller, &["/caller/sub", "/caller"])
            && is(self.decision, &["/decision"])
            // The two sets of stage names do not overlap.
            && is(self.stage, &["/stage", "/denial/stage"])
            && is(self.reason, &["/reason"])
            && is(self.call, &["/callId"])
    }
}

fn query(
    folders: &[PathBuf],
    wanted: &RecordQuery<'_>,
    span: TimeRange,
    format: OutputFormat,
    terminal: &mut Terminal,
) -> Result<CommandExit, Failure> {
    let mut found = Vec::new();
    for folder in folders {
        for record in records(folder, span)? {
            let record = record?;
            if !wanted.fits(&record.entry) {
                continue;
            }
            match format {
                OutputFormat::Json => found.push(serde_json::to_value(&record)?),
                OutputFormat::Text => line::print(&record, terminal)?,
            }
        }
    }
    terminal.data(json!({ "records": found }));
    Ok(CommandExit::Clean)
}

fn export(folders: &[PathBuf], span: TimeRange, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    for folder in folders {
        for record in records(folder, span)? {
            writeln!(terminal, "{}", terminal::json(&serde_json::to_value(&record?)?))?;
        }
    }
    Ok(CommandExit::Clean)
}

fn write_receipt(folders: &[PathBuf], call: &str, terminal: &mut Terminal) -> Result<CommandExit, Failure> {
    let mut problem = None;
    for folder in folders {
        let is_of_call = |record: &Record| record.entry.get("callId").and_then(Value::as_str) == Some(call);
        match receipt_for(folder, is_of_call) {
            Ok(receipt) => {
                writeln!(terminal, "{}", serde_json::to_string_pretty(&receipt)?)?;
                return Ok(CommandExit::Clean);
            }
            // The call may be in another journal.
            Err(JournalError::NotFound(_)) => {}
            // The call is in this journal; errors of others do not matter.
            Err(error @ JournalError::NotCovered(_)) => {
                problem = Some(error);
                break;
            }
            Err(error) => problem = problem.or(Some(error)),
        }
    }
    Err(Failure::Findings(problem.map_or_else(
        || format!("the journal has no call `{}`", visible(call)),
        |problem| visible(&problem.to_string()).into_owned(),
    )))
}

fn check_receipt(
    path: &Path,
    key: Option<&str>,
    format: OutputFormat,
    terminal: &mut Terminal,
) -> Result<CommandExit, Failure> {
    let key = key.ok_or_else(|| {
        Failure::new("name the key to trust: --key FILE or --key ed25519:… (FILE is the gateway's `keys/journal.key.pub`)")
    })?;
    let text = fs::read_to_string(path).map_err(|error| Failure::at(path, error))?;
    let receipt: Receipt = serde_json::from_str(&text)
        .map_err(|error| Failure::at(path, format!("this is not a receipt: {error}")))?;
    let key = trusted_key(key)?;
    let proven = verify_receipt(&receipt, key)
        .map_err(|error| Failure::Findings(format!("invalid receipt: {}", visible(&error.to_string()))))?;
    if format == OutputFormat::Text {
        let good = terminal.palette.good;
        writeln!(
            terminal,
            "{good}valid{good:#}    the journal with key {key} contains {}, unchanged since signing:",
            counted(proven.len(), "record")
        )?;
    }
    terminal.data(json!({ "valid": true, "key": key.to_string() }));
    print_records(proven.iter(), format, terminal)
}

fn records(folder: &Path, span: TimeRange) -> Result<impl Iterator<Item = Result<Record, Failure>>, Failure> {
    let entries = read(folder, span).map_err(|error| Failure::new(visible(&error.to_string())))?;
    Ok(entries
        .map(|record| record.map_err(|flaw| Failure::Findings(visible(&flaw.to_string()).into_owned()))))
}

fn days(from: Option<&str>, to: Option<&str>) -> Result<TimeRange, Failure> {
    let day = |text: &str| -> Result<SystemTime, Failure> {
        time::day(text)
            .ok_or_else(|| Failure::new(format!("invalid day `{}`; write it as 2026-11-16", visible(text))))
    };
    Ok(TimeRange {
        since: from.map(day).transpose()?,
        // `--to` includes the whole day.
        until: to.map(day).transpose()?.map(|midnight| midnight + time::DAY),
    })
}

/// Parses a public key, or reads it from a file such as `journal.key.pub`.
fn trusted_key(named: &str) -> Result<PublicKey, Failure> {
    let problem = match named.parse::<PublicKey>() {
        Ok(key) => return Ok(key),
        Err(problem) => problem,
    };
    let path = Path::new(named);
    if !path.is_file() {
        return Err(Failure::new(format!(
            "`{}` is neither a file nor a public key: {}",
            visible(named),
            visible(&problem)
        )));
    }
    let text = fs::read_to_string(path).map_err(|error| Failure::at(path, error))?;
    text.trim().parse().map_err(|error| Failure::at(path, format!("{error}; a public key is `ed25519:…`")))
}

/// The key next to the journal. It protects only against people without write access there. A missing key is `None`,
/// which makes `verify` fail; an unreadable key is an error.
fn own_key(state: &Path) -> Result<Option<PublicKey>, Failure> {
    let path = state.join("keys/journal.key.pub");
    match fs::read_to_string(&path) {
        Ok(text) => text.trim().parse::<PublicKey>().map(Some).map_err(|error| Failure::at(&path, error)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::at(&path, format!("{error}; name the trusted key with --key"))),
    }
}

const NO_KEY: &str = "keys/journal.key.pub is missing; signatures were checked only against the key in the journal itself, which \
                      anyone could have created; name the trusted key with --key";

fn parsed<T: FromStr>(text: &str) -> Result<T, Failure>
where
    T::Err: std::fmt::Display,
{
    text.parse().map_err(|error: T::Err| Failure::new(visible(&error.to_string())))
}
