//! Runs orders in jails of the sandbox. Network access goes through the egress proxy.

use std::{fmt, future::Future, pin::Pin, sync::Arc};

use tokio::time::{Instant, timeout_at};
use toolgate_egress::{Egress, ProxyReport};
use toolgate_sandbox::{
    CommandJail, CommandLimits, CommandReport, Ending, Jailer, LayerSet, Namespaces, OutputCaps,
    Refused as JailRefused,
};
use toolgate_spec::model::SandboxKind;

use super::{
    egress::{self, EgressPlan},
    order::{CommandOrder, CommandOutcome, Launch, OrderLimits, ServiceProcess, ServiceStart},
};
use crate::cli::report::denial::{Denial, Denials, HostDenial};

/// Runs commands in jails.
#[derive(Clone)]
pub struct JailedLauncher {
    pub jailer: Jailer,
    /// Without it, commands with network access do not run.
    pub egress: Option<Egress>,
    /// Layers that the host must enforce; otherwise no command runs.
    pub required: LayerSet,
}

impl Launch for JailedLauncher {
    fn launch(&self, order: CommandOrder) -> Pin<Box<dyn Future<Output = CommandOutcome> + Send>> {
        let launcher = self.clone();
        Box::pin(async move {
            launcher.run(order).await.unwrap_or_else(|why| CommandOutcome::at_once(Ending::JailFailed(why)))
        })
    }

    fn start(&self, order: CommandOrder) -> ServiceStart {
        let launcher = self.clone();
        Box::pin(async move { launcher.start_service(order).await })
    }
}

impl JailedLauncher {
    async fn run(&self, mut order: CommandOrder) -> Result<CommandOutcome, String> {
        if order.sandbox == SandboxKind::Container {
            return Err("this launcher does not run `execution.sandbox: container`; set `process`".to_owned());
        }
        let outlet = EgressPlan::of(&order, self.egress.as_ref())?;
        let end = Instant::now() + order.deadline;
        let (stdin, caps) = (std::mem::take(&mut order.stdin), caps(&order.limits));
        let progress = Arc::clone(&order.progress);
        let jail = jail(order, self.required);
        // Creating the jail counts towards the deadline of the call.
        let mut running = match timeout_at(end, self.jailer.spawn(jail)).await {
            Ok(spawned) => spawned.map_err(|error| error.to_string())?,
            Err(_) => return Ok(CommandOutcome::at_once(Ending::TimedOut)),
        };
        let outlet = outlet.open(running.take_sockets())?;
        let (refused, passed) = (running.witness(), outlet.witness());
        progress.set_source(move || {
            let passed = passed();
            (egress::effects(&passed), refusals(refused(), &passed).into())
        });
        let report = running.finish(stdin, caps, end.saturating_duration_since(Instant::now())).await;
        Ok(ended(report, &outlet.finish().await))
    }

    async fn start_service(&self, order: CommandOrder) -> Result<ServiceProcess, String> {
        if order.sandbox == SandboxKind::Container {
            return Err("this launcher does not run `execution.sandbox: container`; set `process`".to_owned());
        }
        let outlet = EgressPlan::of(&order, self.egress.as_ref())?;
        let progress = Arc::clone(&order.progress);
        let mut running =
            self.jailer.spawn(jail(order, self.required)).await.map_err(|error| error.to_string())?;
        let outlet = outlet.open(running.take_sockets())?;
        let (denied, passed) = (running.witness(), outlet.witness());
        progress.set_source(move || {
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
            progress,
            handle: Box::new((handle, outlet)),
        })
    }
}

fn jail(order: CommandOrder, required: LayerSet) -> CommandJail {
    let (env, network) = egress::environment(&order);
    let limits = order.limits;
    CommandJail {
        program: order.program,
        argv: order.argv.into_iter().map(Into::into).collect(),
        env,
        cwd: order.cwd,
        view: order.view,
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
        namespaces: Namespaces::Enter,
        trace: order.trace,
    }
}

pub fn caps(limits: &OrderLimits) -> OutputCaps {
    OutputCaps { stdout: limits.stdout_bytes, stderr: limits.stderr_bytes }
}

fn ended(report: CommandReport, passed: &ProxyReport) -> CommandOutcome {
    let refused = Denials {
        listed: refusals(report.refused, passed),
        dropped: report.refused_beyond,
        dropped_paths: report.paths_beyond,
    };
    CommandOutcome {
        ending: report.ending,
        stdout: report.stdout,
        stderr: report.stderr,
        refused,
        layers: report.strength.names(),
        effects: egress::effects(passed),
        usage: report.usage,
    }
}

/// The denials of the jail and of the proxy.
fn refusals(by_jail: Vec<JailRefused>, passed: &ProxyReport) -> Vec<Denial> {
    let mut refused: Vec<Denial> = by_jail.into_iter().map(refusal).collect();
    egress::add_refusals(passed, &mut refused);
    refused
}

fn refusal(refused: JailRefused) -> Denial {
    match refused {
        JailRefused::Path { path, access } => Denial::Path { path, access },
        JailRefused::Address { address } => Denial::Host { target: address, why: HostDenial::ProxyBypassed },
        other @ JailRefused::Syscall { .. } if is_internet_socket(&other) => Denial::Socket(other.describe()),
        other @ JailRefused::Syscall { .. } => Denial::Other(other.describe()),
        passing @ JailRefused::LookUp => Denial::Incidental(passing.describe()),
    }
}

/// Whether it is a socket of an internet family.
fn is_internet_socket(refused: &JailRefused) -> bool {
    matches!(refused, JailRefused::Syscall { name, detail } if name == "socket" && detail.starts_with("AF_INET"))
}

impl fmt::Debug for JailedLauncher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JailedLauncher").field("required", &self.required).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsString, path::PathBuf, time::Duration};

    use toolgate_egress::{BodyGuard, EgressMode, EgressRules, Guard, OutgoingPart};
    use toolgate_sandbox::{Children, JailKind, Network, Trace, View};

    use super::*;
    use crate::cli::run::{egress::PROXY_PORT, order::EgressGrant};

    struct Anything;

    impl BodyGuard for Anything {
        fn judge(&self, _: &OutgoingPart<'_>) -> Option<String> {
            None
        }
    }

    fn order(network: Option<EgressRules>) -> CommandOrder {
        let network = network.map(|rules| EgressGrant {
            rules,
            guard: Arc::new(Anything),
            refused_methods: Vec::new(),
        });
        CommandOrder {
            program: "/usr/bin/env".into(),
            argv: vec!["env".to_owned()],
            env: vec![("http_proxy".to_owned(), "http://evil".into()), ("A".to_owned(), "b".into())],
            stdin: Vec::new(),
            cwd: "/tmp".into(),
            view: View {
                binds: Vec::new(),
                hidden: vec!["/hidden".into()],
                hidden_large: Vec::new(),
                tmp_bytes: 6,
            },
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
            progress: Arc::default(),
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
    fn networked_command_gets_one_proxy_setting() {
        let jail = jail(order(Some(rules())), JailKind::Command.minimum());
        assert_eq!(jail.network, Network::Proxied { http_port: PROXY_PORT });
        let proxies: Vec<_> = jail.env.iter().filter(|(name, _)| name == "http_proxy").collect();
        assert_eq!(proxies, [&(OsString::from("http_proxy"), OsString::from("http://127.0.0.1:3128"))]);
        assert!(jail.env.iter().any(|(name, _)| name == "A"));
    }

    #[test]
    fn without_rules_there_is_no_network_and_no_proxy_setting() {
        let jail = jail(order(None), JailKind::Command.minimum());
        assert_eq!(jail.network, Network::None);
        assert_eq!(jail.env.len(), 2);
        assert_eq!(jail.view.hidden, [PathBuf::from("/hidden")]);
    }
}
