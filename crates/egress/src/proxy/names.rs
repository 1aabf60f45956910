//! Which names are there in a jail? Those that the rules allow. No other name is ever sent to a server.

use std::{net::IpAddr, net::SocketAddr, sync::Arc, time::Duration};

use hickory_resolver::proto::{op::ResponseCode, rr::RecordType};
use tokio::{net::UdpSocket, task::JoinSet, time::sleep};

use super::{
    ledger::{ExchangeKind, Outcome},
    question::{Datagram, Question, read},
    way::Way,
};
use crate::{
    error::{EgressError, Reason, shown},
    target::{Target, TargetHost},
};

/// Answers one question after another; slow ones do not hold up the rest.
pub async fn answer(way: &Arc<Way>, socket: UdpSocket, questions: &mut JoinSet<()>) {
    let socket = Arc::new(socket);
    let mut asked = 0_u32;
    let mut datagram = vec![0; MOST_QUESTION_BYTES + 1];
    loop {
        let received = tokio::select! {
            Some(_) = questions.join_next() => continue,
            received = socket.recv_from(&mut datagram) => received,
        };
        let Ok((length, from)) = received else {
            sleep(A_WHILE).await;
            continue;
        };
        // Who asks more at once asks again later, as everybody does who gets no answer.
        if length > MOST_QUESTION_BYTES || questions.len() >= MOST_AT_ONCE {
            continue;
        }
        match read(datagram.get(..length).unwrap_or_default()) {
            Datagram::Noise => {}
            Datagram::Faulty(reply) => send(&socket, &reply, from).await,
            Datagram::Question(question) => {
                asked = asked.saturating_add(1);
                questions.spawn(respond(Arc::clone(way), Arc::clone(&socket), from, question, asked));
            }
        }
    }
}

async fn respond(way: Arc<Way>, socket: Arc<UdpSocket>, from: SocketAddr, question: Question, number: u32) {
    let entry = way.ledger.open(ExchangeKind::Dns);
    entry.asks(ExchangeKind::Dns, question.kind.to_string(), shown(&question.name));
    let reply = match addresses(&way, &question, number).await {
        Ok(addresses) => {
            entry.close(Outcome::Ok);
            question.answer(&addresses)
        }
        Err(error) => {
            entry.close(Outcome::Ended(error.reason));
            question.refusal(code(error.reason))
        }
    };
    if let Some(reply) = reply {
        send(&socket, &reply, from).await;
    }
}

async fn addresses(way: &Way, question: &Question, number: u32) -> Result<Vec<IpAddr>, EgressError> {
    if number > way.limits.questions {
        let message = "this run asked for too many names; use fewer";
        return Err(EgressError::new(Reason::TooManyNames, message));
    }
    let target = Target::of_authority(&question.name)?;
    // `127.1` is an address to some and a name to others.
    if !matches!(target.host(), TargetHost::Name(name) if *name == question.name) {
        return Err(EgressError::new(Reason::InvalidUrl, "an address is no name to ask for"));
    }
    way.egress.admit(&way.rules_of_names, &target)?;
    if !matches!(question.kind, RecordType::A | RecordType::AAAA) {
        return Ok(Vec::new());
    }
    way.judge_name(&target, &question.written).await?;
    let judged = way.judged_addresses(&way.rules_of_names, &target).await?;
    Ok(judged.iter().map(|address| address.socket().ip()).collect())
}

/// What asks again later is told so; what may never be asked is refused.
const fn code(reason: Reason) -> ResponseCode {
    match reason {
        Reason::DnsNoAddresses => ResponseCode::NoError,
        Reason::DnsResolutionFailed | Reason::DnsTimeout => ResponseCode::ServFail,
        _ => ResponseCode::Refused,
    }
}

/// A lost answer is asked for again.
async fn send(socket: &UdpSocket, reply: &[u8], to: SocketAddr) {
    let _ = socket.send_to(reply, to).await;
}

const MOST_QUESTION_BYTES: usize = 512;
const MOST_AT_ONCE: usize = 16;
const A_WHILE: Duration = Duration::from_millis(50);
