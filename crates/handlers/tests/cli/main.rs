//! Command tools from the manifest to what is released, with a launcher that records in place of the jail.

mod argv;
mod embedding;
mod environment;
mod hostile_git;
mod loading;
mod outcomes;
mod properties;
mod shipped;
mod stand_ins;
mod view;
mod world;
