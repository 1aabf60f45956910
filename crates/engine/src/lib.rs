//! QuickJS-ng as WebAssembly, with the helper prelude already loaded.
