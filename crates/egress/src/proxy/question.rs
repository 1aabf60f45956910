//! What does a question for a name say, and how is it answered? One question of one name, without the tricks of the
//! format: no pointers, no records, no second question.

use std::net::IpAddr;

use hickory_resolver::proto::{
    op::{Edns, Message, OpCode, Query, ResponseCode},
    rr::{
        DNSClass, RData, Record, RecordType,
        rdata::{A, AAAA},
    },
};

/// What a datagram is.
#[derive(Debug)]
pub enum Datagram {
    Question(Question),
    /// Nothing that can be answered with addresses; this is said instead.
    Faulty(Vec<u8>),
    /// Nothing that may be answered at all: no question, or not even the beginning of one.
    Noise,
}

#[derive(Debug)]
pub struct Question {
    id: u16,
    query: Query,
    edns: Option<Edns>,
    recursion_desired: bool,
    /// In lower case, without the last dot; empty if no host could be called so.
    pub name: String,
    /// The same in the letter case of the question.
    pub written: String,
    pub kind: RecordType,
}

pub fn read(datagram: &[u8]) -> Datagram {
    let Some((header, body)) = datagram.split_first_chunk::<HEADER_BYTES>() else { return Datagram::Noise };
    let [high, low, flags, _, counts @ ..] = *header;
    let id = u16::from_be_bytes([high, low]);
    if flags & IS_RESPONSE != 0 {
        return Datagram::Noise;
    }
    if flags & OPCODE != 0 {
        return faulty(id, ResponseCode::NotImp);
    }
    // One question, no answers, no authorities, and at most the one record that says what the asker can take.
    let [0, 1, 0, 0, 0, 0, 0, 0 | 1] = counts else { return faulty(id, ResponseCode::FormErr) };
    let Some((labels, class)) = labels_and_class(body) else { return faulty(id, ResponseCode::FormErr) };
    if class != u16::from(DNSClass::IN) {
        return faulty(id, ResponseCode::Refused);
    }
    let Ok(mut message) = Message::from_vec(datagram) else { return faulty(id, ResponseCode::FormErr) };
    let Some(query) = message.queries.pop() else { return faulty(id, ResponseCode::FormErr) };
    if !message.additionals.is_empty() || message.signature.is_some() {
        return faulty(id, ResponseCode::FormErr);
    }
    let edns = message.edns.map(|_| {
        let mut edns = Edns::new();
        edns.set_max_payload(MOST_REPLY_BYTES);
        edns
    });
    let written = host_name(&labels);
    Datagram::Question(Question {
        id,
        kind: query.query_type(),
        query,
        edns,
        recursion_desired: message.metadata.recursion_desired,
        name: written.to_ascii_lowercase(),
        written,
    })
}

/// The labels of the first name, which must be written out, and the class behind it.
fn labels_and_class(mut body: &[u8]) -> Option<(Vec<&[u8]>, u16)> {
    let mut labels = Vec::new();
    loop {
        let (length, rest) = body.split_first()?;
        // More is a pointer, or a kind of label that was never used.
        if *length > MOST_LABEL_BYTES {
            return None;
        }
        let (label, rest) = rest.split_at_checked(usize::from(*length))?;
        body = rest;
        if label.is_empty() {
            break;
        }
        labels.push(label);
    }
    let [_, _, high, low, ..] = *body else { return None };
    Some((labels, u16::from_be_bytes([high, low])))
}

/// A label may hold any byte, a dot too; a host's may not.
fn host_name(labels: &[&[u8]]) -> String {
    let is_sound =
        |label: &&[u8]| label.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !labels.iter().all(is_sound) {
        return String::new();
    }
    let labels: Vec<_> = labels.iter().map(|label| String::from_utf8_lossy(label)).collect();
    labels.join(".")
}

fn faulty(id: u16, code: ResponseCode) -> Datagram {
    Message::error_msg(id, OpCode::Query, code).to_vec().map_or(Datagram::Noise, Datagram::Faulty)
}

impl Question {
    /// Those addresses that were asked for, few enough to fit; nothing if they cannot be written.
    pub fn answer(&self, addresses: &[IpAddr]) -> Option<Vec<u8>> {
        let record = |address: &IpAddr| match (self.kind, address) {
            (RecordType::A, IpAddr::V4(v4)) => Some(RData::A(A(*v4))),
            (RecordType::AAAA, IpAddr::V6(v6)) => Some(RData::AAAA(AAAA(*v6))),
            _ => None,
        };
        let name = self.query.name();
        let records = addresses.iter().filter_map(record).take(MOST_ANSWERS);
        let records = records.map(|data| Record::from_rdata(name.clone(), SECONDS_TO_LIVE, data)).collect();
        self.reply(ResponseCode::NoError, records)
    }

    pub fn refusal(&self, code: ResponseCode) -> Option<Vec<u8>> {
        self.reply(code, Vec::new())
    }

    fn reply(&self, code: ResponseCode, records: Vec<Record>) -> Option<Vec<u8>> {
        let mut message = Message::error_msg(self.id, OpCode::Query, code);
        message.metadata.recursion_desired = self.recursion_desired;
        message.metadata.recursion_available = true;
        message.add_query(self.query.clone());
        message.insert_answers(records);
        message.edns.clone_from(&self.edns);
        message.to_vec().ok()
    }
}

const HEADER_BYTES: usize = 12;
const IS_RESPONSE: u8 = 0b1000_0000;
const OPCODE: u8 = 0b0111_1000;
const MOST_LABEL_BYTES: u8 = 63;
/// Even with the longest name this stays below the 512 bytes that everybody can take.
const MOST_ANSWERS: usize = 8;
const MOST_REPLY_BYTES: u16 = 512;
/// An answer is for now: the next connection resolves and judges anew.
const SECONDS_TO_LIVE: u32 = 30;

#[cfg(test)]
mod tests;
