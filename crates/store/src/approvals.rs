//! The queue of approval requests, their decisions, and remembered approvals (trust).

use std::time::{Duration, SystemTime};

use rusqlite::{OptionalExtension as _, Row, Transaction, named_params, params};
use tokio::sync::watch;
use toolgate_gate::{
    Approval, ApprovalError, ApprovalId, ApprovalQueue, ApprovalState, ApprovalStore, Binding,
    ConsumedApproval, Decider, HiddenArguments, NewApproval, QueueLimit, RememberScope, Trust,
};

use crate::state::{ApprovalLimits, StateDb, StateError, from_ms, to_ms, unreadable};

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

impl ApprovalStore for StateDb {
    fn open(&self, question: NewApproval, now: SystemTime) -> Result<Approval, ApprovalError> {
        if to_ms(question.expires) <= to_ms(now) {
            return Err(ApprovalError::Expired);
        }
        let id = new_id()?;
        let limits = self.shared.limits;
        self.queue(now, |transaction| {
            if let Some(pending) = pending_for(transaction, &question.binding)? {
                return Ok(Ok(pending));
            }
            if let Some(full) = is_full(transaction, &question, limits, now)? {
                return Ok(Err(full));
            }
            insert(transaction, &id, &question)?;
            if transaction.last_insert_rowid() % PRUNE_EVERY == 0 {
                prune(transaction, now)?;
            }
            Ok(find(transaction, &id)?.ok_or(ApprovalError::Unknown))
        })
    }

    fn get(&self, id: &ApprovalId, now: SystemTime) -> Result<Approval, ApprovalError> {
        self.queue(now, |transaction| Ok(find(transaction, id)?.ok_or(ApprovalError::Unknown)))
    }

    fn consume(
        &self,
        binding: &Binding,
        id: Option<&ApprovalId>,
        now: SystemTime,
    ) -> Result<Option<ConsumedApproval>, ApprovalError> {
        self.queue(now, |transaction| {
            let candidate = match id {
                Some(id) => match usable_by_id(transaction, id, binding)? {
                    Ok(candidate) => candidate,
                    Err(refusal) => return Ok(Err(refusal)),
                },
                None => approved_for(transaction, binding)?,
            };
            candidate.map(|approval| mark_used(transaction, approval, now)).transpose().map(Ok)
        })
    }

    fn is_approved(&self, binding: &Binding, now: SystemTime) -> Result<bool, ApprovalError> {
        let [caller, tool, tool_digest, arguments_digest, policy_digest] = binding_columns(binding);
        let found = self.shared.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT 1 FROM approvals WHERE state = 'approved' AND caller = ?1 AND tool = ?2 AND tool_digest = ?3
                     AND arguments_digest = ?4 AND policy_digest = ?5 AND expires > ?6",
                )?
                .exists(params![caller, tool, tool_digest, arguments_digest, policy_digest, to_ms(now)])
        });
        found.map_err(unavailable)
    }

    fn denial(
        &self,
        binding: &Binding,
        conversation: Option<&str>,
        now: SystemTime,
    ) -> Result<Option<Approval>, ApprovalError> {
        let [caller, tool, tool_digest, arguments_digest, policy_digest] = binding_columns(binding);
        let client = Decider::Client { conversation }.name();
        let found = self.shared.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT * FROM approvals WHERE state = 'denied' AND caller = ?1 AND tool = ?2 AND tool_digest = ?3
                     AND arguments_digest = ?4 AND policy_digest = ?5 AND expires > ?6
                     AND (decided_by <> ?7 OR declined_in = ?8) ORDER BY decided_by = ?7, seq DESC LIMIT 1",
                )?
                .query_row(
                    params![
                        caller,
                        tool,
                        tool_digest,
                        arguments_digest,
                        policy_digest,
                        to_ms(now),
                        client,
                        conversation
                    ],
                    approval,
                )
                .optional()
        });
        found.map_err(unavailable)
    }

    fn is_trusted(&self, trust: &Trust, now: SystemTime) -> Result<bool, ApprovalError> {
        let found = self.shared.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT 1 FROM trusts WHERE caller = ?1 AND flow = ?2 AND tool_digest = ?3
                     AND policy_digest = ?4 AND expires > ?5",
                )?
                .exists(params![trust.caller, trust.flow, trust.tool_digest, trust.policy_digest, to_ms(now)])
        });
        found.map_err(unavailable)
    }

    fn remember(&self, trust: &Trust) -> Result<(), ApprovalError> {
        let written = self.shared.write(|transaction| {
            // The latest approval counts, even if it lasts shorter.
            transaction
                .prepare_cached("INSERT OR REPLACE INTO trusts VALUES (?1, ?2, ?3, ?4, ?5)")?
                .execute(params![
                    trust.caller,
                    trust.flow,
                    trust.tool_digest,
                    trust.policy_digest,
                    to_ms(trust.expires)
                ])?;
            // Delete only this caller's entries, earliest expiry first: a caller must not displace another caller's trust.
            transaction
                .prepare_cached(
                    "DELETE FROM trusts WHERE caller = ?1 AND expires <
                     (SELECT expires FROM trusts WHERE caller = ?1 ORDER BY expires DESC LIMIT 1 OFFSET ?2)",
                )?
                .execute(params![trust.caller, MAX_PER_CALLER])
        });
        written.map(|_| ()).map_err(unavailable)
    }
}

impl ApprovalQueue for StateDb {
    fn list(
        &self,
        state: Option<ApprovalState>,
        limit: usize,
        now: SystemTime,
    ) -> Result<Vec<Approval>, ApprovalError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.queue(now, |transaction| {
            let rows: rusqlite::Result<Vec<Approval>> = match state {
                Some(state) => transaction
                    .prepare_cached("SELECT * FROM approvals WHERE state = ?1 ORDER BY seq DESC LIMIT ?2")?
                    .query_map(params![state.name(), limit], approval)?
                    .collect(),
                None => transaction
                    .prepare_cached("SELECT * FROM approvals ORDER BY seq DESC LIMIT ?1")?
                    .query_map([limit], approval)?
                    .collect(),
            };
            rows.map(Ok)
        })
    }

    fn list_before(
        &self,
        state: Option<ApprovalState>,
        before: &ApprovalId,
        limit: usize,
        now: SystemTime,
    ) -> Result<Vec<Approval>, ApprovalError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.queue(now, |transaction| {
            let seq: Option<i64> = transaction
                .prepare_cached("SELECT seq FROM approvals WHERE id = ?1")?
                .query_row([before.as_str()], |row| row.get(0))
                .optional()?;
            let Some(seq) = seq else { return Ok(Err(ApprovalError::Unknown)) };
            let rows: rusqlite::Result<Vec<Approval>> = transaction
                .prepare_cached(
                    "SELECT * FROM approvals WHERE seq < ?1 AND (?2 IS NULL OR state = ?2) ORDER BY seq DESC LIMIT ?3",
                )?
                .query_map(params![seq, state.map(ApprovalState::name), limit], approval)?
                .collect();
            rows.map(Ok)
        })
    }

    fn decide(
        &self,
        id: &ApprovalId,
        verdict: ApprovalState,
        by: &Decider<'_>,
        note: Option<&str>,
        now: SystemTime,
    ) -> Result<Approval, ApprovalError> {
        let finished = match verdict {
            ApprovalState::Approved => None,
            ApprovalState::Denied => Some(to_ms(now)),
            other => {
                let problem = format!("an approval can be approved or denied, not `{}`", other.name());
                return Err(ApprovalError::Unavailable(problem));
            }
        };
        let declined_in = match (verdict, by) {
            (ApprovalState::Denied, Decider::Client { conversation }) => *conversation,
            _ => None,
        };
        self.queue(now, |transaction| {
            let Some(asked) = find(transaction, id)? else { return Ok(Err(ApprovalError::Unknown)) };
            if let Err(refusal) = asked.check_decision(verdict, by, now) {
                return Ok(Err(refusal));
            }
            transaction
                .prepare_cached(
                    "UPDATE approvals SET state = :state, decided_by = :by, decided_at = :now, note = :note,
                     finished = :finished, declined_in = :declined_in, whole = NULL WHERE id = :id",
                )?
                .execute(named_params! {
                    ":state": verdict.name(), ":by": by.name(), ":now": to_ms(now), ":note": note,
                    ":finished": finished, ":declined_in": declined_in, ":id": id.as_str(),
                })?;
            Ok(find(transaction, id)?.ok_or(ApprovalError::Unknown))
        })
    }

    fn ids_beginning(&self, prefix: &str, limit: usize) -> Result<Vec<ApprovalId>, ApprovalError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let found = self.shared.read(|connection| {
            // Ids are hexadecimal, and `g` sorts after every digit.
            connection
                .prepare_cached(
                    "SELECT id FROM approvals WHERE id >= ?1 AND id < ?1 || 'g' ORDER BY id LIMIT ?2",
                )?
                .query_map(params![prefix, limit], |row| row.get::<_, String>(0))?
                .map(|id| ApprovalId::parse(&id?).ok_or_else(|| unreadable("the id of an approval")))
                .collect()
        });
        found.map_err(unavailable)
    }

    fn reveal(&self, id: &ApprovalId, by: &Decider<'_>, now: SystemTime) -> Result<String, ApprovalError> {
        self.queue(now, |transaction| {
            let Some(asked) = find(transaction, id)? else { return Ok(Err(ApprovalError::Unknown)) };
            if let Err(refusal) = asked.check_open(by, now) {
                return Ok(Err(refusal));
            }
            let mut names = asked.revealed_to;
            if !names.iter().any(|name| name == by.name()) {
                names.push(by.name().to_owned());
            }
            transaction
                .prepare_cached("UPDATE approvals SET revealed_to = ?1 WHERE id = ?2")?
                .execute(params![serde_json::json!(names).to_string(), id.as_str()])?;
            let whole: Option<String> = transaction
                .prepare_cached("SELECT coalesce(whole, arguments) FROM approvals WHERE id = ?1")?
                .query_row([id.as_str()], |row| row.get(0))?;
            Ok(Ok(whole.unwrap_or_default()))
        })
    }

    fn changes(&self) -> watch::Receiver<u64> {
        self.shared.changes()
    }
}

impl StateDb {
    /// Runs one transaction. Marks overdue approvals as expired first; they stay expired even if the clock is set back.
    /// SQLite writes nothing if no row changes.
    fn queue<T>(
        &self,
        now: SystemTime,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<Result<T, ApprovalError>>,
    ) -> Result<T, ApprovalError> {
        let outcome = self.shared.write(|transaction| {
            transaction
                .prepare_cached(
                    "UPDATE approvals SET state = 'expired', finished = ?1, whole = NULL
                     WHERE finished IS NULL AND expires <= ?1",
                )?
                .execute([to_ms(now)])?;
            work(transaction)
        });
        outcome.map_err(unavailable)?
    }
}

/// The approval with this id, if it belongs to this call and can be used. `None`: not decided yet.
fn usable_by_id(
    transaction: &Transaction<'_>,
    id: &ApprovalId,
    binding: &Binding,
) -> rusqlite::Result<Result<Option<Approval>, ApprovalError>> {
    let Some(approval) = find(transaction, id)? else {
        return Ok(Err(ApprovalError::Unknown));
    };
    // Compare the binding before the state: another caller who has the id must not learn the state.
    if approval.question.binding != *binding {
        return Ok(Err(ApprovalError::OtherCall));
    }
    Ok(match approval.state {
        ApprovalState::Approved => Ok(Some(approval)),
        ApprovalState::Pending => Ok(None),
        ApprovalState::Expired => Err(ApprovalError::Expired),
        state @ (ApprovalState::Denied | ApprovalState::Used) => Err(ApprovalError::NotPending(state)),
    })
}

/// The matching approval that expires first.
fn approved_for(transaction: &Transaction<'_>, binding: &Binding) -> rusqlite::Result<Option<Approval>> {
    transaction
        .prepare_cached(
            "SELECT * FROM approvals WHERE state = 'approved' AND caller = ?1 AND tool = ?2 AND tool_digest = ?3
             AND arguments_digest = ?4 AND policy_digest = ?5 ORDER BY expires, seq LIMIT 1",
        )?
        .query_row(binding_columns(binding), approval)
        .optional()
}

fn pending_for(transaction: &Transaction<'_>, binding: &Binding) -> rusqlite::Result<Option<Approval>> {
    transaction
        .prepare_cached(
            "SELECT * FROM approvals WHERE state = 'pending' AND caller = ?1 AND tool = ?2 AND tool_digest = ?3
             AND arguments_digest = ?4 AND policy_digest = ?5",
        )?
        .query_row(binding_columns(binding), approval)
        .optional()
}

/// INVARIANT: called in the transaction that found the approval, so no other writer can intervene.
fn mark_used(
    transaction: &Transaction<'_>,
    approval: Approval,
    now: SystemTime,
) -> rusqlite::Result<ConsumedApproval> {
    let changed = transaction
        .prepare_cached(
            "UPDATE approvals SET state = 'used', finished = ?1 WHERE id = ?2 AND state = 'approved'",
        )?
        .execute(params![to_ms(now), approval.id.as_str()])?;
    match approval.decided_by {
        Some(decided_by) if changed == 1 => {
            Ok(ConsumedApproval { id: approval.id, decided_by, remembers: approval.question.remembers })
        }
        _ => Err(unreadable("an approval without a decision")),
    }
}

fn find(transaction: &Transaction<'_>, id: &ApprovalId) -> rusqlite::Result<Option<Approval>> {
    transaction
        .prepare_cached("SELECT * FROM approvals WHERE id = ?1")?
        .query_row([id.as_str()], approval)
        .optional()
}

/// Returns the limit that rejects another request, if any. Denials stay in force until they expire and are never displaced;
/// a caller with too many denials therefore cannot open new requests.
fn is_full(
    transaction: &Transaction<'_>,
    question: &NewApproval,
    limits: ApprovalLimits,
    now: SystemTime,
) -> rusqlite::Result<Option<ApprovalError>> {
    let (all, of_caller): (u32, u32) = transaction
        .prepare_cached(
            "SELECT count(*), count(*) FILTER (WHERE quota = ?1) FROM approvals WHERE state = 'pending'",
        )?
        .query_row([&question.quota], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let ApprovalLimits { max_pending, max_pending_per_caller } = limits;
    if of_caller >= max_pending_per_caller {
        let limit = QueueLimit::OfCaller(max_pending_per_caller.into());
        return Ok(Some(ApprovalError::QueueFull(limit)));
    }
    if all >= max_pending {
        return Ok(Some(ApprovalError::QueueFull(QueueLimit::InAll(max_pending.into()))));
    }
    let denied: i64 = transaction
        .prepare_cached(
            "SELECT count(*) FROM approvals WHERE state = 'denied' AND caller = ?1 AND expires > ?2 AND quota = ?3",
        )?
        .query_row(params![question.binding.caller, to_ms(now), question.quota], |row| row.get(0))?;
    Ok((denied >= MAX_PER_CALLER).then(|| ApprovalError::DeniedTooOften(MAX_PER_CALLER.unsigned_abs())))
}

fn insert(transaction: &Transaction<'_>, id: &ApprovalId, question: &NewApproval) -> rusqlite::Result<()> {
    let binding = &question.binding;
    transaction
        .prepare_cached(
            "INSERT INTO approvals (id, state, caller, quota, tool, tool_digest, arguments_digest, policy_digest, prompt,
             arguments, hidden_bytes, whole, remembers_flow, remembers_until, because, risk, created, expires)
             VALUES (:id, 'pending', :caller, :quota, :tool, :tool_digest, :arguments_digest, :policy_digest, :prompt,
             :arguments, :hidden_bytes, :whole, :remembers_flow, :remembers_until, :because, :risk, :created, :expires)",
        )?
        .execute(named_params! {
            ":id": id.as_str(),
            ":caller": binding.caller,
            ":quota": question.quota,
            ":tool": binding.tool,
            ":tool_digest": binding.tool_digest,
            ":arguments_digest": binding.arguments_digest,
            ":policy_digest": binding.policy_digest,
            ":prompt": question.prompt,
            ":arguments": question.arguments,
            ":hidden_bytes": i64::try_from(question.hidden.bytes).unwrap_or(i64::MAX),
            ":whole": question.hidden.whole,
            ":remembers_flow": question.remembers.as_ref().map(|remembers| &remembers.conversation),
            ":remembers_until": question.remembers.as_ref().map(|remembers| to_ms(remembers.until)),
            ":because": serde_json::json!(question.because).to_string(),
            ":risk": question.risk,
            ":created": to_ms(question.created),
            ":expires": to_ms(question.expires),
        })?;
    Ok(())
}

/// Deletes rows without effect: old ones, and each caller's oldest ones beyond the per-caller limit.
/// A denial has an effect until it expires. The journal keeps the history.
fn prune(transaction: &Transaction<'_>, now: SystemTime) -> rusqlite::Result<()> {
    let too_old = to_ms(now.checked_sub(KEPT).unwrap_or(SystemTime::UNIX_EPOCH));
    transaction
        .execute("DELETE FROM approvals WHERE finished < ?1 AND expires <= ?2", [too_old, to_ms(now)])?;
    transaction.execute(
        "DELETE FROM approvals WHERE seq IN (
             SELECT seq FROM (
                 SELECT seq, row_number() OVER (PARTITION BY caller ORDER BY finished DESC, seq DESC) AS place
                 FROM approvals WHERE finished IS NOT NULL AND (state <> 'denied' OR expires <= ?1)
             ) WHERE place > ?2
         )",
        [to_ms(now), MAX_PER_CALLER],
    )?;
    transaction.execute("DELETE FROM trusts WHERE expires <= ?1", [to_ms(now)])?;
    Ok(())
}

fn approval(row: &Row<'_>) -> rusqlite::Result<Approval> {
    let id: String = row.get("id")?;
    let state: String = row.get("state")?;
    let because: String = row.get("because")?;
    let revealed_to: String = row.get("revealed_to")?;
    let hidden_bytes: i64 = row.get("hidden_bytes")?;
    let remembers = match (row.get("remembers_flow")?, row.get("remembers_until")?) {
        (Some(conversation), Some(until)) => Some(RememberScope { conversation, until: from_ms(until) }),
        _ => None,
    };
    Ok(Approval {
        id: ApprovalId::parse(&id).ok_or_else(|| unreadable("the id of an approval"))?,
        state: ApprovalState::from_name(&state).ok_or_else(|| unreadable("the state of an approval"))?,
        question: NewApproval {
            binding: Binding {
                caller: row.get("caller")?,
                tool: row.get("tool")?,
                tool_digest: row.get("tool_digest")?,
                arguments_digest: row.get("arguments_digest")?,
                policy_digest: row.get("policy_digest")?,
            },
            quota: row.get("quota")?,
            prompt: row.get("prompt")?,
            arguments: row.get("arguments")?,
            // A negative number means that the file was edited. Then treat everything as hidden.
            hidden: HiddenArguments { bytes: u64::try_from(hidden_bytes).unwrap_or(u64::MAX), whole: None },
            remembers,
            because: serde_json::from_str(&because).map_err(|_| unreadable("the reasons of an approval"))?,
            risk: row.get("risk")?,
            created: from_ms(row.get("created")?),
            expires: from_ms(row.get("expires")?),
        },
        decided_by: row.get("decided_by")?,
        decided_at: row.get::<_, Option<i64>>("decided_at")?.map(from_ms),
        note: row.get("note")?,
        revealed_to: serde_json::from_str(&revealed_to)
            .map_err(|_| unreadable("the viewers of an approval's arguments"))?,
    })
}

fn binding_columns(binding: &Binding) -> [&str; 5] {
    [&binding.caller, &binding.tool, &binding.tool_digest, &binding.arguments_digest, &binding.policy_digest]
}

fn new_id() -> Result<ApprovalId, ApprovalError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| unavailable(StateError::NoRandomness(error)))?;
    Ok(ApprovalId::from_random(bytes))
}

#[expect(clippy::needless_pass_by_value, reason = "handed to `map_err`")]
fn unavailable(error: StateError) -> ApprovalError {
    ApprovalError::Unavailable(error.to_string())
}

/// How long a finished approval is kept.
const KEPT: Duration = Duration::from_hours(30 * 24);
/// How many finished approvals, denials and trust entries are kept per caller.
const MAX_PER_CALLER: i64 = 1_000;
const PRUNE_EVERY: i64 = 64;
