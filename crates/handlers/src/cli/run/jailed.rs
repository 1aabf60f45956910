//! How is an order carried out for real? In a jail of the sandbox; what it may reach, through the gateway's own proxy.

use std::{fmt, future::Future, path::PathBuf, pin::Pin, sync::Arc};

use tokio::time::{Instant, timeout_at};
use toolgate_egress::{Egress, ProxyReport};
use toolgate_sandbox::{
    Access as JailAccess, Attempt, Bind as JailBind, CommandJail, CommandLimits, CommandReport,
    CommandRequired, Jailer, OutputCaps, Refused as JailRefused, Source, Trace as JailTrace, View,
};
use toolgate_spec::model::SandboxKind;

use super::{
    egress::{self, Outlet},
    launch::{
        Access, Bind, Ended, Ending, Launch, NotReached, Order, OrderLimits, Refusals, Refused,
        ServiceProcess, ServiceStart, Trace, Usage,
    },
};

/// Runs commands in jails.
#[derive(Clone)]
pub struct JailedLauncher {
    pub jailer: Jailer,
    /// Without it, commands that reach out are not run.
    pub egress: Option<Egress>,
    /// What a host must enforce; where it does not, nothing runs.
    pub required: CommandRequired,
}

impl Launch for JailedLauncher {
    fn launch(&self, order: Order) -> Pin<Box<dyn Future<Output = Ended> + Send>> {
        let launcher = self.clone();
        Box::pin(async move {
            launcher.run(order).await.unwrap_or_else(|why| Ended::at_once(Ending::NoJail(why)))
        })
    }

    fn start(&self, order: Order) -> ServiceStart {
        let launcher = self.clone();
        Box::pin(async move { launcher.start_service(order).await })
    }
}

impl JailedLauncher {
    async fn run(&self, mut order: Order) -> Result<Ended, String> {
        if order.sandbox == SandboxKind::Container {
            return Err("`execution.sandbox: container` is not for this launcher; say `process`".to_owned());
        }
        let outlet = Outlet::of(&order, self.egress.as_ref())?;
        let end = Instant::now() + order.deadline;
        let (stdin, caps) = (std::mem::take(&mut order.stdin), caps(&order.limits));
        let so_far = Arc::clone(&order.so_far);
        let jail = jail(order, self.required);
        // Making the jail counts: a call has one deadline.
        let mut running = match timeout_at(end, self.jailer.spawn(jail)).await {
            Ok(spawned) => spawned.map_err(|error| error.to_string())?,
            Err(_) => return Ok(Ended::at_once(Ending::TimedOut)),
        };
        let outlet = outlet.open(running.take_sockets())?;
        let (refused, passed) = (running.witness(), outlet.witness());
        so_far.told_by(move || {
            let passed = passed();
            (egress::effects(&passed), refusals(refused(), &passed).into())
        });
        let report = running.finish(stdin, caps, end.saturating_duration_since(Instant::now())).await;
        Ok(ended(report, &outlet.finish().await))
    }

    async fn start_service(&self, order: Order) -> Result<ServiceProcess, String> {
        if order.sandbox == SandboxKind::Container {
            return Err(
                "a container is not for this launcher; set `execution.sandbox` to `process`".to_owned()
            );
        }
        let outlet = Outlet::of(&order, self.egress.as_ref())?;
        let so_far = Arc::clone(&order.so_far);
        let mut running =
            self.jailer.spawn(jail(order, self.required)).await.map_err(|error| error.to_string())?;
        let outlet = outlet.open(running.take_sockets())?;
        let (denied, passed) = (running.witness(), outlet.witness());
        so_far.told_by(move || {
            let passed = passed();
            (egress::effects(&passed), refusals(denied(), &passed).into())
        });
        let layers = running.strength().names();
        let (streams, handle) = running.into_service();
        Ok(ServiceProcess {
            stdin: Box::new(streams.stdin),
            stdout: Box::new(streams.stdout),
            stderr: Box::new(streams.stderr),
            layers,
            so_far,
            handle: Box::new((handle, outlet)),
        })
    }
}

fn jail(order: Order, required: CommandRequired) -> CommandJail {
    let (env, network) = egress::environment(&order);
    let limits = order.limits;
    CommandJail {
        program: order.program,
        argv: order.argv.into_iter().map(Into::into).collect(),
        env,
        cwd: order.cwd,
        view: View {
            binds: order.binds.into_iter().map(bind).collect(),
            hidden: order.hidden,
            hidden_large: order.hidden_large,
            tmp_bytes: limits.tmp_bytes,
        },
        network,
        limits: CommandLimits {
            memory_bytes: limits.memory_bytes,
            cpu_seconds: limits.cpu_seconds,
            processes: limits.processes,
            open_files: limits.open_files,
            file_bytes: limits.file_bytes,
        },
        children: order.children,
        required,
        trace: match order.trace {
            Trace::Refusals => JailTrace::Refusals,
            Trace::Off => JailTrace::Off,
        },
    }
}

pub fn bind(bind: Bind) -> JailBind {
    JailBind {
        source: Source::Opened(bind.held.into()),
        at: bind.path,
        access: match bind.access {
            Access::Read => JailAccess::Read,
            Access::Execute => JailAccess::Execute,
            Access::Write => JailAccess::Write,
        },
    }
}

pub fn caps(limits: &OrderLimits) -> OutputCaps {
    OutputCaps { stdout: limits.stdout_bytes, stderr: limits.stderr_bytes }
}

fn ended(report: CommandReport, passed: &ProxyReport) -> Ended {
    let refused = Refusals {
        told: refusals(report.refused, passed),
        dropped: report.refused_beyond,
        dropped_paths: report.paths_beyond,
    };
    Ended {
        ending: report.ending.into(),
        stdout: report.stdout,
        stderr: report.stderr,
        refused,
        walls: report.strength.names(),
        effects: egress::effects(passed),
        usage: Usage { elapsed: report.usage.elapsed, memory_bytes: report.usage.peak_memory },
    }
}

/// By the jail, and by the way out of it.
fn refusals(by_jail: Vec<JailRefused>, passed: &ProxyReport) -> Vec<Refused> {
    let mut refused: Vec<Refused> = by_jail.into_iter().map(refusal).collect();
    egress::add_refusals(passed, &mut refused);
    refused
}

fn refusal(refused: JailRefused) -> Refused {
    match refused {
        JailRefused::Path { path, access } => path_refusal(path, access),
        JailRefused::Address { address } => Refused::Host { target: address, why: NotReached::NotByProxy },
        other @ JailRefused::Syscall { .. } if is_internet_socket(&other) => {
            Refused::Socket(other.describe())
        }
        other @ JailRefused::Syscall { .. } => Refused::Other(other.describe()),
        passing @ JailRefused::LookUp => Refused::InPassing(passing.describe()),
    }
}

/// Of the networks that a host is reached by.
fn is_internet_socket(refused: &JailRefused) -> bool {
    matches!(refused, JailRefused::Syscall { name, detail } if name == "socket" && detail.starts_with("AF_INET"))
}

fn path_refusal(path: PathBuf, attempt: Attempt) -> Refused {
    let access = match attempt {
        Attempt::Read => Access::Read,
        Attempt::Execute => Access::Execute,
        Attempt::Write => Access::Write,
    };
    Refused::Path { path, access }
}

impl fmt::Debug for JailedLauncher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JailedLauncher").field("required", &self.required).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, time::Duration};

    use toolgate_egress::{BodyGuard, EgressMode, EgressRules, Guard, OutgoingPart};
    use toolgate_sandbox::{Children, Network};

    use super::*;
    use crate::cli::run::{egress::PROXY_PORT, launch::WayOut};

    struct Anything;

    impl BodyGuard for Anything {
        fn judge(&self, _: &OutgoingPart<'_>) -> Option<String> {
            None
        }
    }

    fn order(network: Option<EgressRules>) -> Order {
        let network =
            network.map(|rules| WayOut { rules, guard: Arc::new(Anything), refused_methods: Vec::new() });
        Order {
            program: "/usr/bin/env".into(),
            argv: vec!["env".to_owned()],
            env: vec![("http_proxy".to_owned(), "http://evil".into()), ("A".to_owned(), "b".into())],
            stdin: Vec::new(),
            cwd: "/tmp".into(),
            binds: Vec::new(),
            hidden: vec!["/hidden".into()],
            hidden_large: Vec::new(),
            network,
            sandbox: SandboxKind::Process,
            children: Children::Allowed,
            limits: OrderLimits {
                memory_bytes: 1,
                cpu_seconds: 2,
                processes: 3,
                open_files: 4,
                file_bytes: 5,
                tmp_bytes: 6,
                stdout_bytes: 7,
                stderr_bytes: 8,
            },
            deadline: Duration::from_secs(1),
            trace: Trace::Off,
            so_far: Arc::default(),
        }
    }

    fn rules() -> EgressRules {
        EgressRules {
            mode: EgressMode::Strict,
            hosts: Vec::new(),
            blocked_hosts: Vec::new(),
            blocked_ports: Vec::new(),
            guard_private: Guard::On,
            guard_metadata: Guard::On,
        }
    }

    #[test]
    fn a_command_that_reaches_out_is_told_of_one_proxy() {
        let jail = jail(order(Some(rules())), CommandRequired::MINIMUM);
        assert_eq!(jail.network, Network::Proxied { http_port: PROXY_PORT });
        let told: Vec<_> = jail.env.iter().filter(|(name, _)| name == "http_proxy").collect();
        assert_eq!(told, [&(OsString::from("http_proxy"), OsString::from("http://127.0.0.1:3128"))]);
        assert!(jail.env.iter().any(|(name, _)| name == "A"));
    }

    #[test]
    fn without_rules_there_is_no_network_and_no_word_of_one() {
        let jail = jail(order(None), CommandRequired::MINIMUM);
        assert_eq!(jail.network, Network::None);
        assert_eq!(jail.env.len(), 2);
        assert_eq!(jail.view.hidden, [PathBuf::from("/hidden")]);
    }
}
