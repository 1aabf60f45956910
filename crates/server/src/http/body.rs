//! A request's body, whole, within its size and its time, however it is sent.

use std::{error::Error, time::Duration};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use http::{HeaderMap, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use super::problem::{DoorCode, Problem};

pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    bytes: usize,
    time: Duration,
) -> Result<Bytes, Problem> {
    // Nothing of a body that says it is too long is read.
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
        Err(_) => Err(Problem::new(DoorCode::Timeout, "the body did not arrive in time")),
    }
}

fn why(error: &(dyn Error + Send + Sync + 'static), bytes: usize) -> Problem {
    if error.is::<LengthLimitError>() {
        too_large(bytes)
    } else {
        Problem::new(DoorCode::Malformed, "the body is not sound or ended early")
    }
}

fn too_large(bytes: usize) -> Problem {
    Problem::new(DoorCode::TooLarge, format!("the body is larger than {bytes} bytes"))
}
