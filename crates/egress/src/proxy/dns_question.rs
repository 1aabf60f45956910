//! Parses DNS questions and writes DNS replies. Accepts exactly one question for one name, without compression pointers
//! and records.

use std::net::IpAddr;

use hickory_resolver::proto::{
    op::{Edns, Message, OpCode, Query, ResponseCode},
    rr::{
        DNSClass, RData, Record, RecordType,
        rdata::{A, AAAA},
    },
};

/// The result of parsing a datagram.
#[derive(Debug)]
pub enum Datagram {
    Question(DnsQuestion),
    /// Not a supported question; this error reply is sent instead.
    Faulty(Vec<u8>),
    /// Not a question, so it must not be answered.
    Noise,
}

#[derive(Debug)]
pub struct DnsQuestion {
    id: u16,
    query: Query,
    edns: Option<Edns>,
    recursion_desired: bool,
    /// In lower case without the trailing dot; empty if it is not a valid host name.
    pub name: String,
    /// The name in the spelling of the question.
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
    // One question, no answers, no authorities, and at most the EDNS record with the client's capabilities.
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
        edns.set_max_payload(MAX_REPLY_BYTES);
        edns
    });
    let written = host_name(&labels);
    Datagram::Question(DnsQuestion {
        id,
        kind: query.query_type(),
        query,
        edns,
        recursion_desired: message.metadata.recursion_desired,
        name: written.to_ascii_lowercase(),
        written,
    })
}

/// Returns the labels of the first name and the class. The name must not be compressed.
fn labels_and_class(mut body: &[u8]) -> Option<(Vec<&[u8]>, u16)> {
    let mut labels = Vec::new();
    loop {
        let (length, rest) = body.split_first()?;
        // Larger values are a compression pointer or an unused label type.
        if *length > MAX_LABEL_BYTES {
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

/// A DNS label may contain any byte, even a dot; a host name may not.
fn host_name(labels: &[&[u8]]) -> String {
    let is_valid =
        |label: &&[u8]| label.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !labels.iter().all(is_valid) {
        return String::new();
    }
    let labels: Vec<_> = labels.iter().map(|label| String::from_utf8_lossy(label)).collect();
    labels.join(".")
}

fn faulty(id: u16, code: ResponseCode) -> Datagram {
    Message::error_msg(id, OpCode::Query, code).to_vec().map_or(Datagram::Noise, Datagram::Faulty)
}

impl DnsQuestion {
    /// Replies with the addresses of the requested family, as many as fit. Returns `None` if they cannot be encoded.
    pub fn answer(&self, addresses: &[IpAddr]) -> Option<Vec<u8>> {
        let record = |address: &IpAddr| match (self.kind, address) {
            (RecordType::A, IpAddr::V4(v4)) => Some(RData::A(A(*v4))),
            (RecordType::AAAA, IpAddr::V6(v6)) => Some(RData::AAAA(AAAA(*v6))),
            _ => None,
        };
        let name = self.query.name();
        let records = addresses.iter().filter_map(record).take(MAX_ANSWERS);
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
const MAX_LABEL_BYTES: u8 = 63;
/// Even with the longest name this stays below 512 bytes, which every client accepts.
const MAX_ANSWERS: usize = 8;
const MAX_REPLY_BYTES: u16 = 512;
/// Short, because every connection resolves and checks the name again.
const SECONDS_TO_LIVE: u32 = 30;

#[cfg(test)]
mod tests;
