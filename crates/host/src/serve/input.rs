//! Standard input that delays its end. The SDK drops running calls a few seconds after the end of the input.

use std::{
    future::Future,
    io,
    pin::Pin,
    task::{Context, Poll},
};

use tokio::io::{AsyncRead, ReadBuf};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

#[derive(Debug)]
pub struct HeldInput<R> {
    inner: R,
    has_ended: bool,
    seen: CancellationToken,
    released: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// Waits for the end of the input, and later passes it on to the reader.
#[derive(Clone, Debug, Default)]
pub struct InputEnd {
    seen: CancellationToken,
    released: CancellationToken,
}

impl InputEnd {
    pub fn hold<R>(&self, inner: R) -> HeldInput<R> {
        let released = Box::pin(self.released.clone().cancelled_owned());
        HeldInput { inner, has_ended: false, seen: self.seen.clone(), released }
    }

    /// Waits until the client closes its end.
    pub async fn seen(&self) {
        self.seen.cancelled().await;
    }

    /// Ends the input for the reader, even if the client still sends.
    pub fn release(&self) {
        self.released.cancel();
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for HeldInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.released.as_mut().poll(context).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if this.has_ended {
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        match Pin::new(&mut this.inner).poll_read(context, buffer) {
            Poll::Ready(Ok(())) if buffer.filled().len() > before => Poll::Ready(Ok(())),
            // A read error counts as the end.
            Poll::Ready(_) => {
                this.has_ended = true;
                this.seen.cancel();
                Poll::Pending
            }
            Poll::Pending => Poll::Pending,
        }
    }
}
