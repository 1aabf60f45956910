//! Drops ids, capabilities and the right to gain new ones.

use std::io;

use rustix::{
    process::{DumpableBehavior, Gid, Uid},
    thread::{self, CapabilitiesSecureBits, CapabilitySet, CapabilitySets},
};

use crate::layers::{Layer, LayerSet};

/// Removes every capability from the bounding set, as far as this process may. The result is read back from the
/// kernel later. Without the right to do this, `no_new_privs` still makes the set useless.
pub(crate) fn empty_bounding_set() {
    for number in 0..u64::BITS {
        let one = CapabilitySet::from_bits_retain(1 << number);
        // The kernel returns EINVAL for numbers above its last capability, and EPERM without CAP_SETPCAP.
        if thread::remove_capability_from_bounding_set(one) == Err(rustix::io::Errno::INVAL) {
            break;
        }
    }
}

/// Changes root to the user `nobody` where possible. In a container without CAP_SETUID it is not, and the strength
/// reports that.
pub(crate) fn drop_root() {
    if !rustix::process::geteuid().is_root() && !rustix::process::getuid().is_root() {
        return;
    }
    let (uid, gid) = (Uid::from_raw(NOBODY), Gid::from_raw(NOBODY));
    // The user id last: changing it removes the right to change the other two.
    let _ = thread::set_thread_groups(&[]);
    let _ = thread::set_thread_res_gid(gid, gid, gid);
    let _ = thread::set_thread_res_uid(uid, uid, uid);
}

/// Drops every capability held, and those that a program run later would inherit.
pub(crate) fn drop_capabilities() -> io::Result<()> {
    thread::clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    thread::set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(())
}

/// Takes the special rights of user 0 away, as far as this process may.
pub(crate) fn lock_bits() {
    let all = CapabilitiesSecureBits::NO_ROOT
        | CapabilitiesSecureBits::NO_ROOT_LOCKED
        | CapabilitiesSecureBits::NO_SETUID_FIXUP
        | CapabilitiesSecureBits::NO_SETUID_FIXUP_LOCKED
        | CapabilitiesSecureBits::KEEP_CAPS_LOCKED
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE
        | CapabilitiesSecureBits::NO_CAP_AMBIENT_RAISE_LOCKED;
    let _ = thread::set_capabilities_secure_bits(all);
}

/// Asks the kernel for the privileges that this process still has.
pub(crate) fn read_back(strength: &mut LayerSet) -> io::Result<()> {
    strength.add_if(Layer::NoNewPrivileges, thread::no_new_privs()?);
    let held = thread::capabilities(None)?;
    let none = (held.effective | held.permitted | held.inheritable).is_empty();
    strength.add_if(Layer::NoCapabilities, none);
    Ok(())
}

/// Asks the kernel whether the bounding set is empty. An empty one stays empty: the kernel never adds to it.
pub(crate) fn read_back_bounding_set(strength: &mut LayerSet) {
    let each = (0..u64::BITS).map(|number| CapabilitySet::from_bits_retain(1 << number));
    let could_come_back =
        each.map_while(|one| thread::capability_is_in_bounding_set(one).ok()).any(|is_there| is_there);
    strength.add_if(Layer::EmptyBoundingSet, !could_come_back);
}

/// No program run from here on can gain privileges.
pub(crate) fn forbid_new() -> io::Result<()> {
    thread::set_no_new_privs(true)?;
    Ok(())
}

/// No core dump, no debugger, and `/proc/<pid>` belongs to root.
pub(crate) fn refuse_dumps() -> io::Result<()> {
    rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let now = rustix::process::dumpable_behavior()?;
    if now == DumpableBehavior::NotDumpable {
        Ok(())
    } else {
        Err(io::Error::other("the kernel still reports the process as dumpable"))
    }
}

const NOBODY: u32 = 65534;
