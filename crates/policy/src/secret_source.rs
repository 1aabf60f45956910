//! The port through which placeholders such as `${NAME}` get their values.

use zeroize::Zeroizing;

/// Looks up secrets by name: in the secret store, its providers, the environment, or a map in tests.
pub trait SecretSource: Send + Sync {
    /// The current value, if this consumer may have it. A consumer that may not sees the secret as missing.
    fn secret(&self, name: &str, consumer: SecretConsumer<'_>) -> Option<Zeroizing<String>>;

    /// Why no tool ever gets this name, set or not.
    fn refusal(&self, _name: &str) -> Option<String> {
        None
    }

    /// Differs after a change of the secrets, as far as the source notices changes.
    fn version(&self) -> u64 {
        0
    }
}

/// Asks for a secret, by its name in the configuration of the gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SecretConsumer<'c> {
    Tool(&'c str),
    Upstream(&'c str),
}

impl<F: Fn(&str) -> Option<String> + Send + Sync> SecretSource for F {
    fn secret(&self, name: &str, _consumer: SecretConsumer<'_>) -> Option<Zeroizing<String>> {
        self(name).map(Zeroizing::new)
    }
}
