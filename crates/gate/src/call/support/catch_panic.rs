//! Turns a panic of a future into a value.

use std::{
    future::{Future, poll_fn},
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

/// `None` if the work panicked; it is then dropped. The panic hook has already printed the location.
pub async fn catch_panic<W: Future>(work: W) -> Option<W::Output> {
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
    async fn panic_returns_none() {
        assert_eq!(catch_panic(async { 1 }).await, Some(1));
        let panics = async {
            tokio::task::yield_now().await;
            panic!("on purpose");
        };
        assert_eq!(catch_panic::<_>(panics).await, None::<()>);
    }
}
