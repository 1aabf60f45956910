//! Isolation layers around a command in a container.

use std::fmt;

use super::RuntimeKind;
use crate::{Layer, LayerSet};

/// The layers confirmed by the runtime's description of the finished container and by the kernel.
#[derive(Clone, Eq, PartialEq)]
pub struct ContainerStrength {
    pub(super) runtime: RuntimeKind,
    pub(super) layers: LayerSet,
}

impl ContainerStrength {
    pub fn has(&self, layer: Layer) -> bool {
        self.layers.has(layer)
    }

    /// Records that the egress sockets were created: there is a network now. Its namespace contains only a loopback
    /// interface, checked from inside. The gateway listens there.
    pub(super) fn add_egress(&mut self) {
        self.layers.remove(Layer::NetworkNone);
        self.layers.add(Layer::NetworkNamespace);
    }

    /// The runtime and the layers in force, for people and the journal.
    pub fn names(&self) -> Vec<String> {
        let runtime = format!("container:{}", self.runtime.name());
        std::iter::once(runtime).chain(self.layers.names()).collect()
    }
}

impl fmt::Debug for ContainerStrength {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.names()).finish()
    }
}
