//! Did our own code panic? Then nothing of the work outlives it, and whoever waits is told.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

/// `None` where the work panicked; it has been dropped then. The panic hook has told where it was.
pub async fn caught<W: Future>(work: W) -> Option<W::Output> {
    let mut work = pin!(work);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
        Ok(polled) => polled.map(Some),
        Err(_) => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn work_that_panics_has_no_result() {
        assert_eq!(caught(async { 1 }).await, Some(1));
        let panics = async {
            tokio::task::yield_now().await;
            panic!("on purpose");
        };
        assert_eq!(caught::<_>(panics).await, None::<()>);
    }
}
