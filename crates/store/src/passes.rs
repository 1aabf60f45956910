//! The last test run (pass) of each tool, with the document and policy digests that it was for.

use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use toolgate_gate::{PassStore, StoredPass};
use toolgate_policy::{PassOutcome, PassRecord};

use crate::state::{StateDb, StateError, from_ms, to_ms, unreadable};

#[cfg(test)]
mod tests;

/// Tools whose pass changed, and the number of the last change.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct PassChanges {
    /// Ids of the tools, with the names that the passes are for.
    pub tools: Vec<(String, Option<String>)>,
    pub last: i64,
}

impl StateDb {
    /// The passes that changed after change number `after`. Does not read unchanged passes.
    pub fn passes_changed_after(&self, after: i64) -> Result<PassChanges, StateError> {
        self.shared.read(|connection| {
            let mut changes = PassChanges { tools: Vec::new(), last: after };
            let mut query = connection.prepare_cached(
                "SELECT tool_id, name, number FROM pass_changes WHERE number > ?1 ORDER BY number",
            )?;
            let mut rows = query.query([after])?;
            while let Some(row) = rows.next()? {
                changes.tools.push((row.get(0)?, row.get(1)?));
                changes.last = row.get(2)?;
            }
            Ok(changes)
        })
    }

    /// The digests of all published documents, by the tools' ids.
    pub fn published_digests(&self) -> Result<HashMap<String, String>, StateError> {
        self.shared.read(|connection| {
            connection
                .prepare_cached("SELECT tool_id, document_digest FROM passes WHERE published")?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        })
    }

    /// The latest pass of every tool, in order of ids.
    pub fn all_passes(&self) -> Result<Vec<(String, StoredPass)>, StateError> {
        self.shared.read(|connection| {
            connection
                .prepare_cached("SELECT * FROM passes ORDER BY tool_id")?
                .query_map([], |row| Ok((row.get("tool_id")?, pass(row)?)))?
                .collect()
        })
    }
}

impl PassStore for StateDb {
    fn latest(&self, tool_id: &str) -> Result<Option<StoredPass>, String> {
        self.shared.read(|connection| find(connection, tool_id)).map_err(|error| error.to_string())
    }

    fn is_name_withdrawn(&self, name: &str, tool_id: &str) -> Result<bool, String> {
        let found = self.shared.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT 1 FROM passes WHERE name = ?1 AND tool_id <> ?2 AND withdrawn LIMIT 1",
                )?
                .exists([name, tool_id])
        });
        found.map_err(|error| error.to_string())
    }

    fn revise(
        &self,
        tool_id: &str,
        change: &dyn Fn(Option<StoredPass>) -> Result<StoredPass, String>,
    ) -> Result<StoredPass, String> {
        let revised = self.shared.write(|transaction| {
            let revised = change(find(transaction, tool_id)?);
            if let Ok(revised) = &revised {
                put(transaction, tool_id, revised)?;
            }
            Ok(revised)
        });
        revised.map_err(|error| error.to_string())?
    }

    fn forget(&self, tool_id: &str) -> Result<(), String> {
        let deleted = self.shared.write(|transaction| {
            note_change(transaction, tool_id, None)?;
            transaction.prepare_cached("DELETE FROM passes WHERE tool_id = ?1")?.execute([tool_id])
        });
        deleted.map(|_| ()).map_err(|error| error.to_string())
    }

    fn note_publication(&self, tool_id: &str, name: &str, settings: &str) -> Result<(), String> {
        let written = self.shared.write(|transaction| {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO publications VALUES (?1, ?2, ?3)")?
                .execute([tool_id, name, settings])
        });
        written.map(|_| ()).map_err(|error| error.to_string())
    }

    fn last_publication(&self, tool_id: &str, name: &str) -> Result<Option<String>, String> {
        let found = self.shared.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT settings FROM publications WHERE tool_id = ?1 OR name = ?2
                     ORDER BY tool_id = ?1 DESC, rowid DESC LIMIT 1",
                )?
                .query_row([tool_id, name], |row| row.get(0))
                .optional()
        });
        found.map_err(|error| error.to_string())
    }
}

fn find(connection: &Connection, tool_id: &str) -> rusqlite::Result<Option<StoredPass>> {
    connection
        .prepare_cached("SELECT * FROM passes WHERE tool_id = ?1")?
        .query_row([tool_id], pass)
        .optional()
}

fn put(connection: &Connection, tool_id: &str, pass: &StoredPass) -> rusqlite::Result<()> {
    let (outcome, error) = match &pass.record.outcome {
        PassOutcome::Passed => ("passed", None),
        PassOutcome::Failed { error } => ("failed", Some(error)),
    };
    if let (true, Some(name)) = (pass.is_published, &pass.name) {
        // Another id with the same name is an earlier version. Unpublish it, or restoring its file would serve it again.
        connection
            .prepare_cached(
                "INSERT OR REPLACE INTO pass_changes
                 SELECT tool_id, name, (SELECT coalesce(max(number), 0) + 1 FROM pass_changes)
                 FROM passes WHERE name = ?1 AND tool_id <> ?2 AND published",
            )?
            .execute([name.as_str(), tool_id])?;
        connection
            .prepare_cached("UPDATE passes SET published = 0 WHERE name = ?1 AND tool_id <> ?2")?
            .execute([name.as_str(), tool_id])?;
    }
    note_change(connection, tool_id, pass.name.as_deref())?;
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO passes VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?
        .execute(params![
            tool_id,
            pass.record.document_digest,
            pass.record.policy_digest,
            outcome,
            error,
            to_ms(pass.at),
            pass.observed.to_string(),
            pass.is_published,
            pass.name,
            pass.is_withdrawn,
            pass.accepted.join(" "),
            pass.accepts_draft,
        ])?;
    Ok(())
}

/// Numbers never decrease: a row is replaced by one with a higher number and is never removed.
fn note_change(connection: &Connection, tool_id: &str, name: Option<&str>) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT OR REPLACE INTO pass_changes
             VALUES (?1, ?2, (SELECT coalesce(max(number), 0) + 1 FROM pass_changes))",
        )?
        .execute(params![tool_id, name])?;
    Ok(())
}

fn pass(row: &Row<'_>) -> rusqlite::Result<StoredPass> {
    let outcome: String = row.get("outcome")?;
    let observed: String = row.get("observed")?;
    let accepted: String = row.get("accepted")?;
    Ok(StoredPass {
        name: row.get("name")?,
        record: PassRecord {
            document_digest: row.get("document_digest")?,
            policy_digest: row.get("policy_digest")?,
            outcome: match outcome.as_str() {
                "passed" => PassOutcome::Passed,
                "failed" => PassOutcome::Failed { error: row.get("error")? },
                _ => return Err(unreadable("the outcome of a pass")),
            },
        },
        at: from_ms(row.get("at")?),
        observed: serde_json::from_str(&observed).map_err(|_| unreadable("what a pass observed"))?,
        is_published: row.get("published")?,
        is_withdrawn: row.get("withdrawn")?,
        accepted: accepted.split_whitespace().map(str::to_owned).collect(),
        accepts_draft: row.get("accepts_draft")?,
    })
}
