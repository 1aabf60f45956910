//! Remembers until when the state was compared with the journal, inside the state itself.

use std::time::SystemTime;

use rusqlite::OptionalExtension as _;

use crate::state::{State, StateError, from_ms, to_ms};

impl State {
    /// Until when the state was last compared with the journal. `None`: never.
    pub fn compared_until(&self) -> Result<Option<SystemTime>, StateError> {
        let found = self.shared.read(|connection| {
            connection.prepare_cached("SELECT at FROM compared")?.query_row([], |row| row.get(0)).optional()
        })?;
        Ok(found.map(from_ms))
    }

    pub fn set_compared_until(&self, at: SystemTime) -> Result<(), StateError> {
        self.shared.write(|transaction| {
            transaction
                .prepare_cached("INSERT OR REPLACE INTO compared (only, at) VALUES (1, ?1)")?
                .execute([to_ms(at)])
                .map(drop)
        })
    }

    /// Drops all approvals and trust: for a state that turned out to be older than the journal.
    pub fn drop_approvals(&self) -> Result<(), StateError> {
        self.shared.write(|transaction| {
            transaction.execute("DELETE FROM approvals", [])?;
            transaction.execute("DELETE FROM trusts", []).map(drop)
        })
    }
}
