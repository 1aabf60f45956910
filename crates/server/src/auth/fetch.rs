//! Fetches key sets over HTTP. The host crate implements it with its egress rules.

use std::{future::Future, pin::Pin};

use bytes::Bytes;

/// One GET with verified TLS and without redirects to other origins. The caller limits size and time as well.
pub trait Fetch: Send + Sync {
    fn get<'a>(&'a self, url: &'a str) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send + 'a>>;
}
