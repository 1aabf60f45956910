//! Landlock rules of a worker: no file, no port and no process outside it.

use std::io;

use landlock::{
    ABI, Access, AccessFs, AccessNet, LandlockStatus, Ruleset, RulesetAttr, RulesetStatus, Scope,
};

/// Handles every right that the running kernel knows and grants none. Returns the Landlock version in force. `None`
/// means that this kernel has no Landlock, which is not an error here: the gateway decides whether that is enough.
pub(crate) fn refuse_every_path_and_port() -> io::Result<Option<u8>> {
    // The crate drops rights that the running kernel does not know.
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|rules| rules.handle_access(AccessNet::from_all(NEWEST)))
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(io::Error::other)?;
    Ok(match (status.ruleset, status.landlock) {
        (RulesetStatus::NotEnforced, _)
        | (_, LandlockStatus::NotEnabled | LandlockStatus::NotImplemented) => None,
        (_, LandlockStatus::Available { effective_abi, .. }) => u8::try_from(effective_abi as i32).ok(),
    })
}

const NEWEST: ABI = ABI::V9;
