//! The time until which the state was compared with the journal, stored in the state itself.

use std::time::SystemTime;

use rusqlite::OptionalExtension as _;

use crate::state::{StateDb, StateError, from_ms, to_ms};

impl StateDb {
    /// The time of the last comparison with the journal. `None`: never compared.
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

    /// Deletes all approvals and trust. Used if the state is older than the journal, for instance after a restore.
    pub fn drop_approvals(&self) -> Result<(), StateError> {
        self.shared.write(|transaction| {
            transaction.execute("DELETE FROM approvals", [])?;
            transaction.execute("DELETE FROM trusts", []).map(drop)
        })
    }
}
