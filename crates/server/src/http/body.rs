//! Reads a whole request body within its size and time limit.

use std::{error::Error, time::Duration};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use super::problem::{DoorCode, HttpProblem};

pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    bytes: usize,
    time: Duration,
) -> Result<Bytes, HttpProblem> {
    // Reject a declared length that is too large before reading.
    let declared =
        headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > bytes) {
        return Err(too_large(bytes));
    }
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    match timeout(time, Limited::new(body, bytes).collect()).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) => Err(why(error.as_ref(), bytes)),
        Err(_) => Err(HttpProblem::new(DoorCode::Timeout, "the body did not arrive in time")),
    }
}

fn why(error: &(dyn Error + Send + Sync + 'static), bytes: usize) -> HttpProblem {
    if error.is::<LengthLimitError>() {
        too_large(bytes)
    } else {
        HttpProblem::new(DoorCode::Malformed, "the body is malformed or ended early")
    }
}

fn too_large(bytes: usize) -> HttpProblem {
    HttpProblem::new(DoorCode::TooLarge, format!("the body is larger than {bytes} bytes"))
}
