//! How does a key set come from afar? Whoever assembles the gateway answers, with its guarded way out.

use std::{future::Future, pin::Pin};

use bytes::Bytes;

/// One GET, verified TLS, no redirects to other origins. The caller caps size and time once more.
pub trait Fetch: Send + Sync {
    fn get<'a>(&'a self, url: &'a str) -> Pin<Box<dyn Future<Output = Result<Bytes, String>> + Send + 'a>>;
}
