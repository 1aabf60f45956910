//! JSON-RPC messages as lines: reads and checks them, answers malformed ones itself, and keeps request ids apart.

use std::{collections::HashMap, sync::Arc};

use rmcp::{
    model::{ClientJsonRpcMessage, ClientNotification, GetExtensions as _, RequestId, ServerJsonRpcMessage},
    service::RoleServer,
    transport::{Transport, async_rw::AsyncRwTransport},
};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, BufReader, Empty, empty},
    task::JoinHandle,
};
use tokio_util::sync::CancellationToken;

use super::CallerNow;
use crate::{
    http::DoorEvents,
    mcp::{
        envelope::{self, MethodSet, Rejection},
        in_flight::{IdReservation, InFlight},
    },
};

/// A pair of pipes. The SDK writes to it; reading is our own, because the SDK ignores malformed lines and duplicate ids.
pub struct LineTransport<R, W: AsyncWrite> {
    read: BufReader<R>,
    /// The part of the next line that has been read. Kept here, because the SDK drops `receive` in the middle.
    line: Vec<u8>,
    is_too_long: bool,
    longest: usize,
    write: AsyncRwTransport<RoleServer, Empty, W>,
    /// The answer to the last malformed line, while it is being written. Nothing more is read until then.
    answering: Option<JoinHandle<()>>,
    in_flight: Arc<InFlight>,
    /// Requests without an answer.
    unanswered: HashMap<RequestId, IdReservation>,
    events: Arc<dyn DoorEvents>,
    caller: CallerNow,
}

impl<R, W> LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub fn new(
        (read, write): (R, W),
        longest: usize,
        caller: CallerNow,
        events: Arc<dyn DoorEvents>,
    ) -> Self {
        Self {
            read: BufReader::new(read),
            line: Vec::new(),
            is_too_long: false,
            longest,
            write: AsyncRwTransport::new(empty(), write),
            answering: None,
            in_flight: Arc::default(),
            unanswered: HashMap::new(),
            events,
            caller,
        }
    }

    /// Reads to the end of a line. Returns false at the end of the input; a last line without its end does not count.
    async fn read_line(&mut self) -> bool {
        loop {
            // An input that cannot be read is one that has ended.
            let Ok(came) = self.read.fill_buf().await else { return false };
            if came.is_empty() {
                return false;
            }
            let end = came.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(came.len(), |at| at + 1);
            self.is_too_long |= self.line.len() + taken > self.longest;
            if self.is_too_long {
                self.line.clear();
            } else {
                self.line.extend(came.iter().take(taken));
            }
            self.read.consume(taken);
            if end.is_some() {
                return true;
            }
        }
    }

    /// The message in the line that was read, or `None` if the line is blank.
    fn take_message(&mut self) -> Option<Result<ClientJsonRpcMessage, Rejection>> {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            let why = format!("the message is longer than {} bytes", self.longest);
            return Some(Err(Rejection::invalid_request(why)));
        }
        let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&line).trim_ascii();
        if line.is_empty() {
            return None;
        }
        Some(envelope::read(line, MethodSet::All).and_then(|message| self.admit(message)))
    }

    fn admit(&mut self, mut message: ClientJsonRpcMessage) -> Result<ClientJsonRpcMessage, Rejection> {
        match &mut message {
            ClientJsonRpcMessage::Request(asked) => {
                let reserved = self.in_flight.reserve(&asked.id, CancellationToken::new());
                let Some(reservation) = reserved else {
                    return Err(Rejection::duplicate_id(asked.id.clone()));
                };
                asked.request.extensions_mut().insert(reservation.clone());
                self.unanswered.insert(asked.id.clone(), reservation);
            }
            // The SDK sends no answer to a cancelled request.
            ClientJsonRpcMessage::Notification(said) => {
                if let ClientNotification::CancelledNotification(cancelled) = &said.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.unanswered.remove(id);
                }
            }
            ClientJsonRpcMessage::Response(_) | ClientJsonRpcMessage::Error(_) => {}
        }
        Ok(message)
    }

    fn reject(&mut self, rejection: Rejection) {
        let caller = self.caller.get().subject;
        self.events.refused_caller(rejection.door_code(), None, &caller, rejection.detail());
        if let Some(answer) = rejection.over_pipe() {
            let sending = self.write.send(answer);
            self.answering = Some(tokio::spawn(async move {
                // A client that reads no more is noticed by the SDK.
                let _ = sending.await;
            }));
        }
    }
}

impl<R, W> Transport<RoleServer> for LineTransport<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &message {
            ServerJsonRpcMessage::Response(answer) => Some(&answer.id),
            ServerJsonRpcMessage::Error(answer) => answer.id.as_ref(),
            _ => None,
        };
        // Before it is written: a client that has read the answer may use the id again.
        answered.and_then(|id| self.unanswered.remove(id));
        self.write.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(answering) = &mut self.answering {
                let _ = answering.await;
                self.answering = None;
            }
            if !self.read_line().await {
                return None;
            }
            match self.take_message() {
                None => {}
                Some(Ok(message)) => return Some(message),
                Some(Err(rejection)) => self.reject(rejection),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.close().await
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
