//! Isolation layers of workers, commands and containers, and comparison with the required ones.

mod kinds;
mod table;

use std::fmt;

pub use kinds::JailKind;
pub use table::Layer;

/// A set of layers and a Landlock version: the layers in force around a process, or the required ones.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct LayerSet {
    bits: u64,
    landlock_abi: u8,
}

impl LayerSet {
    pub const NONE: Self = Self { bits: 0, landlock_abi: 0 };

    pub const fn of(layers: &[Layer]) -> Self {
        let mut set = Self::NONE;
        let mut rest = layers;
        while let [first, others @ ..] = rest {
            set.bits |= first.bit();
            rest = others;
        }
        set
    }

    /// The same layers, with at least this version of Landlock.
    #[must_use]
    pub const fn with_landlock(self, abi: u8) -> Self {
        Self { landlock_abi: if self.landlock_abi > abi { self.landlock_abi } else { abi }, ..self }
    }

    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self { bits: self.bits | other.bits, landlock_abi: self.landlock_abi }
            .with_landlock(other.landlock_abi)
    }

    /// The layers that are required, or mandatory in this kind of jail, and not in this set. If there are any,
    /// nothing may run.
    #[must_use]
    pub const fn missing(self, kind: JailKind, required: Self) -> Self {
        let Self { bits, landlock_abi } = kind.mandatory().union(required);
        let is_older = self.landlock_abi < landlock_abi;
        Self { bits: bits & !self.bits, landlock_abi: if is_older { landlock_abi } else { 0 } }
    }

    pub const fn is_empty(self) -> bool {
        self.bits == 0 && self.landlock_abi == 0
    }

    pub const fn has(self, layer: Layer) -> bool {
        self.bits & layer.bit() != 0
    }

    /// The Landlock version, if any.
    pub fn landlock_abi(self) -> Option<u8> {
        (self.landlock_abi > 0).then_some(self.landlock_abi)
    }

    pub fn iter(self) -> impl Iterator<Item = Layer> {
        Layer::ALL.into_iter().filter(move |layer| self.has(*layer))
    }

    /// Names of the layers, for people and the journal.
    pub fn names(self) -> Vec<String> {
        let landlock = self.landlock_abi().map(|abi| format!("landlock-{abi}"));
        self.iter().map(|layer| layer.name().to_owned()).chain(landlock).collect()
    }

    pub(crate) fn add(&mut self, layer: Layer) {
        self.bits |= layer.bit();
    }

    /// Adds the layer if it was found to be in force.
    pub(crate) fn add_if(&mut self, layer: Layer, holds: bool) {
        if holds {
            self.add(layer);
        }
    }

    pub(crate) fn remove(&mut self, layer: Layer) {
        self.bits &= !layer.bit();
    }

    pub(crate) fn set_landlock_abi(&mut self, abi: u8) {
        self.landlock_abi = abi;
    }

    /// Encodes the set: one bit per layer, and the Landlock version in the highest byte.
    pub fn to_bits(self) -> u64 {
        self.bits | u64::from(self.landlock_abi) << LANDLOCK_SHIFT
    }

    /// Decodes the layers that a jail of this kind reports. Returns `None` for a layer that such a jail cannot have,
    /// and for unknown bits.
    pub fn from_bits(kind: JailKind, bits: u64) -> Option<Self> {
        let landlock_abi = u8::try_from(bits >> LANDLOCK_SHIFT).ok()?;
        let set = Self { bits: bits & ((1 << LANDLOCK_SHIFT) - 1), landlock_abi };
        let possible = kind.possible();
        (set.bits & !possible.bits == 0 && landlock_abi <= possible.landlock_abi).then_some(set)
    }
}

impl fmt::Debug for LayerSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.names()).finish()
    }
}

impl FromIterator<Layer> for LayerSet {
    fn from_iter<I: IntoIterator<Item = Layer>>(layers: I) -> Self {
        layers.into_iter().fold(Self::NONE, |set, layer| set.union(Self::of(&[layer])))
    }
}

const LANDLOCK_SHIFT: u32 = 56;

#[cfg(test)]
mod tests;
