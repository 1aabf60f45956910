//! The tables of the state and their migrations.

use std::{path::Path, time::Duration};

use rusqlite::{
    Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior,
    config::DbConfig::{SQLITE_DBCONFIG_DEFENSIVE, SQLITE_DBCONFIG_TRUSTED_SCHEMA},
};

use super::StateError;

/// Opens an existing file with hardened settings and migrates it. Other processes may do the same at the same time.
pub(super) fn connect(path: &Path, patience: Duration) -> Result<Connection, StateError> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut connection = Connection::open_with_flags(path, flags).map_err(StateError::at(path))?;
    harden(&connection, patience).map_err(StateError::at(path))?;
    migrate(&mut connection, path)?;
    use_wal(&connection, patience).map_err(StateError::at(path))?;
    check_pages(&connection, path)?;
    Ok(connection)
}

/// Treats the file as untrusted: its schema cannot call functions or be rewritten through SQL. With `FULL`, an acknowledged
/// decision survives a power cut.
fn harden(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    connection.busy_timeout(patience)?;
    connection.set_db_config(SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    connection.pragma_update(None, "synchronous", "FULL")
}

/// Runs in one transaction: concurrent processes migrate once, and a killed one leaves nothing half done.
fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StateError> {
    let failed = || StateError::at(path);
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failed())?;
    let found: i64 = pragma(&transaction, "user_version").map_err(failed())?;
    if !is_ours(&transaction, found).map_err(failed())? {
        return Err(StateError::Foreign(path.to_owned()));
    }
    let known = i64::try_from(MIGRATIONS.len()).unwrap_or(i64::MAX);
    if found > known {
        return Err(StateError::Newer { path: path.to_owned(), found, known });
    }
    if found == known {
        return Ok(());
    }
    for migration in MIGRATIONS.iter().skip(usize::try_from(found).unwrap_or_default()) {
        transaction.execute_batch(migration).map_err(failed())?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION).map_err(failed())?;
    transaction.pragma_update(None, "user_version", known).map_err(failed())?;
    transaction.commit().map_err(failed())
}

/// True for an empty file or one with our application id.
fn is_ours(transaction: &Transaction<'_>, version: i64) -> rusqlite::Result<bool> {
    let application: i64 = pragma(transaction, "application_id")?;
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(if version == 0 { application == 0 && tables == 0 } else { version > 0 && application == APPLICATION })
}

/// Switches to WAL, retrying while the file is busy: the switch needs exclusive access, and SQLite does not wait for it.
fn use_wal(connection: &Connection, patience: Duration) -> rusqlite::Result<()> {
    let mut left = patience;
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_) => return Err(no_wal()),
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && !left.is_zero() => {
                std::thread::sleep(PAUSE);
                left = left.saturating_sub(PAUSE);
            }
            Err(error) => return Err(error),
        }
    }
}

fn no_wal() -> rusqlite::Error {
    let problem = "its file system does not support a write-ahead log; choose a directory on a local disk";
    rusqlite::Error::ToSqlConversionFailure(problem.into())
}

fn check_pages(connection: &Connection, path: &Path) -> Result<(), StateError> {
    let verdict: String =
        connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0)).map_err(StateError::at(path))?;
    if verdict == "ok" {
        return Ok(());
    }
    Err(StateError::Damaged { path: path.to_owned(), problem: verdict.replace('\n', " ") })
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

const PAUSE: Duration = Duration::from_millis(10);

/// `tgat` in the file header identifies our databases.
const APPLICATION: i64 = 0x7467_6174;

/// `user_version` counts the migrations that a file has had. Released migrations are never edited.
const MIGRATIONS: [&str; 8] = [
    include_str!("schema/1.sql"),
    include_str!("schema/2.sql"),
    include_str!("schema/3.sql"),
    include_str!("schema/4.sql"),
    include_str!("schema/5.sql"),
    include_str!("schema/6.sql"),
    include_str!("schema/7.sql"),
    include_str!("schema/8.sql"),
];
