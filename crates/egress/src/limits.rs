//! Limits of a request: sizes, counts and a timeout for every phase.

use std::time::Duration;

/// Limits of one request. They apply in every network mode.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EgressLimits {
    pub url_bytes: usize,
    pub request_headers: usize,
    pub request_header_bytes: usize,
    pub request_body_bytes: usize,
    pub redirects: usize,
    pub answers: usize,
    pub response_headers: usize,
    /// Status line and headers on the wire, interim heads included. Applies again to the headers as text.
    pub response_header_bytes: usize,
    /// Applies to the bytes on the wire and again to the decompressed body.
    pub response_body_bytes: usize,
    pub resolve: Duration,
    /// Shared by all addresses of a host.
    pub connect: Duration,
    pub tls: Duration,
    /// From the first byte of the request to the last response header.
    pub response_head: Duration,
    /// The longest pause within a body.
    pub body_idle: Duration,
    /// The whole request with all redirects.
    pub whole: Duration,
}

impl Default for EgressLimits {
    fn default() -> Self {
        Self {
            url_bytes: 16 * 1024,
            request_headers: 64,
            request_header_bytes: 32 * 1024,
            request_body_bytes: 10 * 1024 * 1024,
            redirects: 5,
            answers: 64,
            response_headers: 128,
            response_header_bytes: 64 * 1024,
            response_body_bytes: 10 * 1024 * 1024,
            resolve: Duration::from_secs(5),
            connect: Duration::from_secs(5),
            tls: Duration::from_secs(5),
            response_head: Duration::from_secs(25),
            body_idle: Duration::from_secs(10),
            whole: Duration::from_secs(30),
        }
    }
}
