//! Last steps of the process that becomes the command. The order matters: each step removes rights that earlier
//! steps need.

use std::{io, io::Read, os::fd::AsFd, os::unix::net::UnixStream};

use rustix::fs::Mode;

use super::{
    encode::{Order, Word},
    groundwork::Groundwork,
    init::{Trouble, at, offer_to_die_first, tell, wait_for_the_group},
    passing,
    seal::{self, Confinement, Filters, Ground},
    view::{self, Base},
};
use crate::{JailKind, Layer, LayerSet, privileges, sys, sys::process};

/// In its own namespaces. Prepares all that needs no order, waits for the order, and adds the command's binds to the view.
pub(crate) fn run(
    base: Base,
    groundwork: &Groundwork,
    mut strength: LayerSet,
    inner: &UnixStream,
    filters: &Filters,
) -> ! {
    let viewed = prepare(&base, groundwork, &mut strength).and_then(|confinement| {
        let order = receive_order(inner).map_err(at("read the order"))?;
        view::finish(base, &order)?;
        Ok((order, confinement))
    });
    match viewed {
        Ok((order, confinement)) => {
            strength.add(Layer::PrivateView);
            finish(&order, strength, inner, filters, Stand::View(confinement))
        }
        Err(trouble) => {
            tell(inner, &trouble.into(), &[]);
            sys::leave(CANNOT_RUN)
        }
    }
}

/// Each step here takes nothing away that mounting needs.
fn prepare(base: &Base, groundwork: &Groundwork, strength: &mut LayerSet) -> Result<Confinement, Trouble> {
    leave_session_and_bounding_set(strength)?;
    Confinement::of_view(groundwork, base.root())
}

/// No terminal, a group that can be killed as a whole, and no capability that a program could gain.
fn leave_session_and_bounding_set(strength: &mut LayerSet) -> Result<(), Trouble> {
    rustix::process::setsid().map_err(at("start a session"))?;
    privileges::lock_bits();
    privileges::empty_bounding_set();
    privileges::read_back_bounding_set(strength);
    Ok(())
}

fn receive_order(inner: &UnixStream) -> io::Result<Order> {
    tell(inner, &Word::Ready, &[]);
    let parcel = passing::receive(inner)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    Order::read(parcel)
}

/// On the host's file tree, as leader of a process group.
pub(crate) fn run_in_a_group(order: &Order, inner: &UnixStream, filters: &Filters) -> ! {
    let mut strength = LayerSet::NONE;
    strength.add(Layer::DiesTogether);
    // A dead supervisor is noticed at the first message, which then fails.
    let is_grouped = wait_for_the_group(inner).unwrap_or(false);
    strength.add_if(Layer::ControlGroup, is_grouped);
    offer_to_die_first();
    // The limit does not count root's processes.
    strength.add_if(Layer::ProcessLimit, is_grouped || !rustix::process::geteuid().is_root());
    match leave_session_and_bounding_set(&mut strength) {
        Ok(()) => finish(order, strength, inner, filters, Stand::Host),
        Err(trouble) => {
            tell(inner, &trouble.into(), &[]);
            sys::leave(CANNOT_RUN)
        }
    }
}

/// The file tree of the command, with the rules that were prepared for it.
enum Stand {
    View(Confinement),
    Host,
}

fn finish(order: &Order, mut strength: LayerSet, inner: &UnixStream, filters: &Filters, stand: Stand) -> ! {
    let word = match become_the_command(order, &mut strength, inner, filters, stand) {
        Err(SetupRefusal::TooWeak(missing)) => Word::TooWeak(missing),
        Err(SetupRefusal::Trouble(trouble)) => trouble.into(),
    };
    tell(inner, &word, &[]);
    sys::leave(CANNOT_RUN)
}

impl Stand {
    const fn ground(&self) -> Ground {
        match self {
            Self::View(_) => Ground::View,
            Self::Host => Ground::Host,
        }
    }
}

/// Why the command does not run.
enum SetupRefusal {
    TooWeak(Vec<String>),
    Trouble(Trouble),
}

impl From<Trouble> for SetupRefusal {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble)
    }
}

/// Returns only on failure.
fn become_the_command(
    order: &Order,
    strength: &mut LayerSet,
    mut inner: &UnixStream,
    filters: &Filters,
    stand: Stand,
) -> Result<std::convert::Infallible, SetupRefusal> {
    rustix::process::umask(Mode::WGRP | Mode::WOTH);
    let [input, output, error] = &order.stdio;
    rustix::stdio::dup2_stdin(input).map_err(at("set standard input"))?;
    rustix::stdio::dup2_stdout(output).map_err(at("set standard output"))?;
    rustix::stdio::dup2_stderr(error).map_err(at("set standard error"))?;
    rustix::process::chdir(&order.cwd)
        .map_err(at(format!("enter the working directory `{}`", order.cwd.display())))?;
    sys::close_on_execute(FIRST_OTHER).map_err(at("close the open descriptors"))?;

    let ground = stand.ground();
    privileges::drop_capabilities().map_err(at("drop the capabilities"))?;
    privileges::forbid_new().map_err(at("forbid new privileges"))?;
    privileges::read_back(strength).map_err(at("read back the privileges"))?;
    seal::limit(&order.groundwork.limits, ground).map_err(at("set the limits"))?;
    let abi = match stand {
        Stand::View(confinement) => confinement.enter_view(order)?,
        Stand::Host => Confinement::enter_host(order)?,
    };
    strength.add(Layer::Limits);
    strength.set_landlock_abi(abi.unwrap_or(0));
    let required = match ground {
        Ground::View => order.required,
        // Only Landlock isolates files and signals here.
        Ground::Host => order.required.with_landlock(SIGNALS_KEPT_IN),
    };
    // The jailer has reset all other signals; its supervisors ignore only this one.
    process::restore_default(libc::SIGPIPE).map_err(at("reset the signals"))?;

    // Checked before the filter is installed, as if it were in force: a filter that cannot be installed ends the
    // process anyway.
    strength.add(Layer::Seccomp);
    let missing = strength.missing(JailKind::Command, required);
    if !missing.is_empty() {
        return Err(SetupRefusal::TooWeak(missing.names()));
    }
    let sealed = Word::Sealed(*strength).to_frame().map_err(at("report that all is ready"))?;
    let filter = filters.for_order(order, ground).map_err(at("choose a filter"))?;
    let listener = sys::filter::install(&filter.program).map_err(at("install the filter"))?;
    // After the filter's descriptor, the last one opened here. The filter allows every process to lower a limit.
    seal::limit_descriptors(&order.groundwork.limits).map_err(at("limit the descriptors"))?;
    passing::send(inner, &sealed, &[listener.as_fd()]).map_err(at("report that all is ready"))?;
    drop(listener);
    // The command must not run before the supervisor answers its filter and sockets and counts its memory.
    inner.read_exact(&mut [0]).map_err(at("receive the go-ahead"))?;
    let error = process::execute(&order.program, &order.argv, &order.env);
    Err(at::<io::Error>(format!("run `{}`", order.program.to_string_lossy()))(error).into())
}

/// The first Landlock version that restricts signals.
const SIGNALS_KEPT_IN: u8 = 6;
const FIRST_OTHER: u32 = 3;
const CANNOT_RUN: u8 = 127;
