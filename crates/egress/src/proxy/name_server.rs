//! Name server of a sandbox. It resolves only names that the rules allow and never forwards another one.

use std::{net::IpAddr, net::SocketAddr, sync::Arc, time::Duration};

use hickory_resolver::proto::{op::ResponseCode, rr::RecordType};
use tokio::{net::UdpSocket, task::JoinSet, time::sleep};

use super::{
    context::ProxyContext,
    dns_question::{Datagram, DnsQuestion, read},
    ledger::{ExchangeKind, ExchangeOutcome},
};
use crate::{
    error::{EgressError, EgressReason, shown},
    target::{RequestTarget, TargetHost},
};

/// Answers questions concurrently, so slow ones do not delay the rest.
pub async fn answer(context: &Arc<ProxyContext>, socket: UdpSocket, questions: &mut JoinSet<()>) {
    let socket = Arc::new(socket);
    let mut asked = 0_u32;
    let mut datagram = vec![0; MAX_QUESTION_BYTES + 1];
    loop {
        let received = tokio::select! {
            Some(_) = questions.join_next() => continue,
            received = socket.recv_from(&mut datagram) => received,
        };
        let Ok((length, from)) = received else {
            sleep(RETRY_DELAY).await;
            continue;
        };
        // Drop excess questions; clients repeat a question that was not answered.
        if length > MAX_QUESTION_BYTES || questions.len() >= MAX_AT_ONCE {
            continue;
        }
        match read(datagram.get(..length).unwrap_or_default()) {
            Datagram::Noise => {}
            Datagram::Faulty(reply) => send(&socket, &reply, from).await,
            Datagram::Question(question) => {
                asked = asked.saturating_add(1);
                questions.spawn(respond(Arc::clone(context), Arc::clone(&socket), from, question, asked));
            }
        }
    }
}

async fn respond(
    context: Arc<ProxyContext>,
    socket: Arc<UdpSocket>,
    from: SocketAddr,
    question: DnsQuestion,
    number: u32,
) {
    let entry = context.ledger.open(ExchangeKind::Dns);
    entry.set_request(ExchangeKind::Dns, question.kind.to_string(), shown(&question.name));
    let reply = match addresses(&context, &question, number).await {
        Ok(addresses) => {
            entry.close(ExchangeOutcome::Ok);
            question.answer(&addresses)
        }
        Err(error) => {
            entry.close(ExchangeOutcome::Ended(error.reason));
            question.refusal(code(error.reason))
        }
    };
    if let Some(reply) = reply {
        send(&socket, &reply, from).await;
    }
}

async fn addresses(
    context: &ProxyContext,
    question: &DnsQuestion,
    number: u32,
) -> Result<Vec<IpAddr>, EgressError> {
    if number > context.limits.questions {
        let message = "this run sent too many DNS questions; use fewer";
        return Err(EgressError::new(EgressReason::TooManyNames, message));
    }
    let target = RequestTarget::of_authority(&question.name)?;
    // Some programs read `127.1` as an address, others as a name.
    if !matches!(target.host(), TargetHost::Name(name) if *name == question.name) {
        return Err(EgressError::new(
            EgressReason::InvalidUrl,
            "an address is not a name; connect to it without DNS",
        ));
    }
    context.egress.admit(&context.dns_rules, &target)?;
    if !matches!(question.kind, RecordType::A | RecordType::AAAA) {
        return Ok(Vec::new());
    }
    context.judge_name(&target, &question.written).await?;
    let judged = context.judged_addresses(&context.dns_rules, &target).await?;
    Ok(judged.iter().map(|address| address.socket().ip()).collect())
}

/// A temporary failure makes the client ask again; a denied name is refused.
const fn code(reason: EgressReason) -> ResponseCode {
    match reason {
        EgressReason::DnsNoAddresses => ResponseCode::NoError,
        EgressReason::DnsResolutionFailed | EgressReason::DnsTimeout => ResponseCode::ServFail,
        _ => ResponseCode::Refused,
    }
}

/// Errors are ignored; the client repeats a question whose answer is lost.
async fn send(socket: &UdpSocket, reply: &[u8], to: SocketAddr) {
    let _ = socket.send_to(reply, to).await;
}

const MAX_QUESTION_BYTES: usize = 512;
const MAX_AT_ONCE: usize = 16;
const RETRY_DELAY: Duration = Duration::from_millis(50);
