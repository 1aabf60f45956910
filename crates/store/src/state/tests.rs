//! The state file: permissions, migration, change notification, and errors for damaged or replaced files.

use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use rusqlite::Connection;
use tempfile::TempDir;
use toolgate_gate::{
    ApprovalError, ApprovalId, ApprovalQueue as _, ApprovalState, ApprovalStore as _, Decider,
    PassStore as _, Trust,
};

use super::{ApprovalLimits, StateDb, StateError, from_ms, lock, to_ms};

const LIMITS: ApprovalLimits = ApprovalLimits { max_pending: 100, max_pending_per_caller: 10 };

struct StateFile {
    _folder: TempDir,
    path: PathBuf,
}

fn place() -> StateFile {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state").join("toolgate.db");
    StateFile { _folder: folder, path }
}

fn open(place: &StateFile) -> StateDb {
    StateDb::open(&place.path, LIMITS).unwrap()
}

fn problem(path: &Path) -> String {
    StateDb::open(path, LIMITS).unwrap_err().to_string().replace(&path.display().to_string(), "FILE")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn trust(caller: &str) -> Trust {
    Trust {
        caller: caller.to_owned(),
        flow: "flow".to_owned(),
        tool_digest: "tool".to_owned(),
        policy_digest: "policy".to_owned(),
        expires: SystemTime::now() + Duration::from_hours(1),
    }
}

/// Waits for a tick after `act`; a hang fails the test.
fn ticks_after(state: &StateDb, act: impl FnOnce()) {
    let mut changes = state.changes();
    changes.mark_unchanged();
    act();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(Duration::from_secs(30), changes.changed()).await })
        .expect("a tick")
        .expect("the state is open");
}

#[track_caller]
fn is_unavailable<T: std::fmt::Debug>(result: Result<T, ApprovalError>) -> String {
    match result {
        Err(ApprovalError::Unavailable(problem)) => problem,
        other => panic!("{other:?} instead of unavailable"),
    }
}

#[test]
fn is_private_durable_and_hardened() {
    let place = place();
    let state = open(&place);
    state.remember(&trust("ann")).unwrap();
    let folder = place.path.parent().unwrap();
    assert_eq!(mode(folder), 0o700);
    let files: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(files.len() >= 3, "the log is there too: {files:?}");
    for file in files {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
    let writer = lock(&state.shared.writer);
    let ask = |pragma: &str| -> String {
        writer
            .pragma_query_value(None, pragma, |row| row.get::<_, rusqlite::types::Value>(0))
            .map(|value| format!("{value:?}"))
            .unwrap()
    };
    assert_eq!(ask("journal_mode"), "Text(\"wal\")");
    assert_eq!(ask("synchronous"), "Integer(2)", "2 is FULL");
    assert_eq!(ask("foreign_keys"), "Integer(1)");
    assert_eq!(ask("trusted_schema"), "Integer(0)");
    assert_eq!(ask("user_version"), "Integer(8)");
    writer.execute("PRAGMA writable_schema = ON", []).unwrap();
    writer.execute("DELETE FROM sqlite_schema", []).unwrap_err();
    let reader = lock(&state.shared.reader);
    reader.connection.execute("DELETE FROM trusts", []).unwrap_err();
}

#[test]
fn state_survives_a_restart() {
    let place = place();
    open(&place).remember(&trust("ann")).unwrap();
    assert_eq!(open(&place).is_trusted(&trust("ann"), SystemTime::now()), Ok(true));
}

#[test]
fn new_file_can_be_opened_concurrently() {
    let place = place();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let place = &place;
            scope.spawn(move || open(place).remember(&trust(&number.to_string())).unwrap());
        }
    });
    let state = open(&place);
    for number in 0..8 {
        assert_eq!(state.is_trusted(&trust(&number.to_string()), SystemTime::now()), Ok(true));
    }
}

#[test]
fn newer_or_foreign_file_is_rejected_unchanged() {
    let place = place();
    drop(open(&place));
    let connection = Connection::open(&place.path).unwrap();
    connection.pragma_update(None, "user_version", 9).unwrap();
    drop(connection);
    assert_eq!(
        problem(&place.path),
        "the state `FILE` was written by a newer toolgate (format 9, this one supports 8); upgrade, or choose another file"
    );
    let foreign = place.path.with_file_name("notes.db");
    let connection = Connection::open(&foreign).unwrap();
    connection.execute_batch("CREATE TABLE notes (text); PRAGMA user_version = 1").unwrap();
    drop(connection);
    fs::set_permissions(&foreign, fs::Permissions::from_mode(0o600)).unwrap();
    let before = fs::read(&foreign).unwrap();
    assert_eq!(problem(&foreign), "`FILE` is the database of another program; choose another file");
    assert_eq!(fs::read(&foreign).unwrap(), before);
}

/// Old requests without arguments stay and can be decided; passes without a name stay too.
#[test]
fn older_file_is_migrated() {
    let place = place();
    fs::create_dir_all(place.path.parent().unwrap()).unwrap();
    fs::set_permissions(place.path.parent().unwrap(), fs::Permissions::from_mode(0o700)).unwrap();
    let old = Connection::open(&place.path).unwrap();
    old.execute_batch(include_str!("schema/1.sql")).unwrap();
    old.execute_batch(
        "INSERT INTO approvals (id, state, caller, tool, tool_digest, arguments_digest, policy_digest, prompt, because,
         risk, created, expires) VALUES ('apr_00000000000000000000000000000007', 'pending', 'ann', 'say', 't', 'a', 'p',
         'Say it?', '[]', 'L1', 0, 9000000000000);
         INSERT INTO passes VALUES ('id', 'd', 'p', 'passed', NULL, 0, '{}', 1);
         INSERT INTO passes VALUES ('or', 'd', 'p', 'failed', 'no', 0, '{}', 0);
         PRAGMA application_id = 1952932212; PRAGMA user_version = 1",
    )
    .unwrap();
    drop(old);
    fs::set_permissions(&place.path, fs::Permissions::from_mode(0o600)).unwrap();
    let id = ApprovalId::parse("apr_00000000000000000000000000000007").unwrap();
    let kept = open(&place).get(&id, SystemTime::now()).unwrap();
    assert_eq!((kept.question.prompt.as_str(), kept.question.arguments), ("Say it?", None));
    assert_eq!((kept.question.hidden.bytes, kept.question.remembers), (0, None));
    let state = open(&place);
    let passes = state.all_passes().unwrap();
    let passes: Vec<_> = passes
        .iter()
        .map(|(id, pass)| (id.as_str(), pass.is_published, pass.is_withdrawn, &pass.name))
        .collect();
    assert_eq!(passes, [("id", true, false, &None), ("or", false, true, &None)]);
    state.decide(&id, ApprovalState::Approved, &Decider::Operator("olga"), None, SystemTime::now()).unwrap();
    assert_eq!(state.get(&id, SystemTime::now()).unwrap().state, ApprovalState::Approved);
}

/// Earlier versions kept an accepted draft as a code among the accepted findings.
#[test]
fn accepted_draft_of_an_older_file_is_kept() {
    let connection = Connection::open_in_memory().unwrap();
    for number in 1..=7 {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("src/state/schema/{number}.sql"));
        connection.execute_batch(&fs::read_to_string(file).unwrap()).unwrap();
    }
    for (id, accepted) in [("a", "LINT_A draft"), ("b", "draft"), ("c", "LINT_A"), ("d", "drafty")] {
        connection
            .execute(
                "INSERT INTO passes VALUES (?1, 'd', 'p', 'passed', NULL, 0, '{}', 1, NULL, 0, ?2)",
                [id, accepted],
            )
            .unwrap();
    }
    connection.execute_batch(include_str!("schema/8.sql")).unwrap();
    let mut query =
        connection.prepare("SELECT accepted, accepts_draft FROM passes ORDER BY tool_id").unwrap();
    let rows = query.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?))).unwrap();
    let rows: Vec<(String, bool)> = rows.map(Result::unwrap).collect();
    let expected = [("LINT_A", true), ("", true), ("LINT_A", false), ("drafty", false)];
    assert_eq!(rows, expected.map(|(accepted, is_draft)| (accepted.to_owned(), is_draft)));
}

#[test]
fn file_that_others_can_read_or_redirect_is_rejected() {
    let place = place();
    drop(open(&place));
    fs::set_permissions(&place.path, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(problem(&place.path).contains("other users can read or write it; run `chmod 600 "));
    fs::set_permissions(&place.path, fs::Permissions::from_mode(0o600)).unwrap();
    let folder = place.path.parent().unwrap();
    let link = folder.join("link.db");
    symlink(&place.path, &link).unwrap();
    assert!(problem(&link).contains("not a regular file"));
    fs::set_permissions(folder, fs::Permissions::from_mode(0o770)).unwrap();
    assert!(problem(&place.path).contains("other users can write to the directory"));
    assert!(problem(Path::new("/")).contains("has no file name"));
}

#[test]
fn directory_behind_a_symlink_is_accepted() {
    let place = place();
    drop(open(&place));
    let folder = place.path.parent().unwrap();
    let link = folder.with_file_name("link");
    symlink(folder, &link).unwrap();
    StateDb::open(&link.join("toolgate.db"), LIMITS).unwrap();
}

#[test]
fn file_that_is_not_a_database_is_rejected() {
    let place = place();
    drop(open(&place));
    for garbage in [&b"not a database at all, but long enough to be looked at"[..], &[0xff; 8192]] {
        fs::write(&place.path, garbage).unwrap();
        let error = StateDb::open(&place.path, LIMITS).unwrap_err();
        assert!(matches!(error, StateError::Database { .. }), "{error}");
        assert_eq!(fs::read(&place.path).unwrap(), garbage, "the file is kept for recovery");
    }
}

#[test]
fn corrupt_page_is_found_on_open() {
    let place = place();
    {
        let state = open(&place);
        for number in 0..500 {
            state.remember(&trust(&format!("caller {number}"))).unwrap();
        }
    }
    let mut bytes = fs::read(&place.path).unwrap();
    let start = 4096 * 3;
    assert!(bytes.len() > start + 4096);
    bytes[start..].fill(0xa5);
    fs::write(&place.path, bytes).unwrap();
    let error = StateDb::open(&place.path, LIMITS).unwrap_err();
    assert!(matches!(error, StateError::Damaged { .. } | StateError::Database { .. }), "{error}");
}

#[test]
fn deleted_replaced_or_unreachable_file_approves_nothing() {
    let place = place();
    let now = SystemTime::now();
    let state = open(&place);
    state.remember(&trust("ann")).unwrap();
    assert_eq!(state.is_trusted(&trust("ann"), now), Ok(true));

    let aside = place.path.with_file_name("aside.db");
    ticks_after(&state, || fs::rename(&place.path, &aside).unwrap());
    assert!(
        is_unavailable(state.is_trusted(&trust("ann"), now)).contains("was deleted or replaced; restart")
    );
    is_unavailable(state.list(None, 10, now));
    state.latest("tool").unwrap_err();

    fs::copy(&aside, &place.path).unwrap();
    is_unavailable(state.is_trusted(&trust("ann"), now));

    fs::rename(&aside, &place.path).unwrap();
    assert_eq!(state.is_trusted(&trust("ann"), now), Ok(true), "the same file is back");

    let folder = place.path.parent().unwrap();
    fs::rename(folder, folder.with_file_name("gone")).unwrap();
    is_unavailable(state.is_trusted(&trust("ann"), now));
    is_unavailable(state.remember(&trust("bob")));
}

#[test]
fn missing_tables_approve_nothing() {
    let place = place();
    let state = open(&place);
    state.remember(&trust("ann")).unwrap();
    Connection::open(&place.path).unwrap().execute_batch("DROP TABLE trusts; DROP TABLE approvals").unwrap();
    is_unavailable(state.is_trusted(&trust("ann"), SystemTime::now()));
    is_unavailable(state.list(None, 10, SystemTime::now()));
}

#[test]
fn full_disk_loses_nothing_and_approves_nothing() {
    let place = place();
    let state = open(&place);
    let pages: i64 =
        lock(&state.shared.writer).pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    lock(&state.shared.writer).pragma_update(None, "max_page_count", pages).unwrap();
    let kept: Vec<String> = (0..1000)
        .map(|number| format!("{number} {}", "x".repeat(100)))
        .take_while(|caller| state.remember(&trust(caller)).is_ok())
        .collect();
    assert!(kept.len() < 1000);
    let refused = format!("{} {}", kept.len(), "x".repeat(100));
    assert!(is_unavailable(state.remember(&trust(&refused))).contains("full"));
    let now = SystemTime::now();
    assert_eq!(state.is_trusted(&trust(&refused), now), Ok(false));
    assert!(kept.iter().all(|caller| state.is_trusted(&trust(caller), now) == Ok(true)));
}

#[test]
fn lock_held_by_another_process_is_an_error() {
    let place = place();
    let state = StateDb::open_patiently(&place.path, LIMITS, Duration::from_millis(20)).unwrap();
    let other = Connection::open(&place.path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(is_unavailable(state.remember(&trust("ann"))).contains("locked"));
    is_unavailable(state.list(None, 10, SystemTime::now()));
    assert_eq!(state.is_trusted(&trust("ann"), SystemTime::now()), Ok(false), "reading does not wait");
    other.execute_batch("ROLLBACK").unwrap();
    state.remember(&trust("ann")).unwrap();
}

#[test]
fn own_commits_tick_at_once_and_foreign_ones_soon() {
    let place = place();
    let (state, other) = (open(&place), open(&place));
    let changes = state.changes();
    let before = *changes.borrow();
    state.remember(&trust("ann")).unwrap();
    assert_ne!(*changes.borrow(), before, "before the call returned");
    ticks_after(&state, || other.remember(&trust("bob")).unwrap());
}

#[test]
fn reading_does_not_tick() {
    let place = place();
    let state = open(&place);
    state.remember(&trust("ann")).unwrap();
    let before = *state.changes().borrow();
    state.list(None, 10, SystemTime::now()).unwrap();
    state.is_trusted(&trust("ann"), SystemTime::now()).unwrap();
    state.shared.check_for_changes();
    assert_eq!(*state.changes().borrow(), before, "a reader that reacts to a tick must not cause another");
}

#[test]
fn dropping_the_state_ends_its_thread() {
    let place = place();
    let state = open(&place);
    let shared = std::sync::Arc::downgrade(&state.shared);
    let changes = state.changes();
    drop(state);
    assert!(shared.upgrade().is_none());
    assert!(changes.has_changed().is_err(), "who waits for a change learns that none will come");
}

#[test]
fn times_are_stored_without_loss() {
    for ms in [0, 1, -1, 1_700_000_000_123, -86_400_000, 253_402_300_799_999] {
        assert_eq!(to_ms(from_ms(ms)), ms);
    }
    let fine = SystemTime::UNIX_EPOCH + Duration::from_nanos(1_999_999);
    assert_eq!(to_ms(fine), 1, "rounded down");
}
