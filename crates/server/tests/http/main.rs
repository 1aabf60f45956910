//! The HTTP front as the network sees it: raw bytes over loopback.

mod answers;
mod client;
mod connections;
mod door;
mod gateway;
mod smuggling;
