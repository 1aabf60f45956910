//! Is this message a call, and nothing but a call?

use std::{fmt, marker::PhantomData};

use rmcp::model::{ClientCapabilities, Implementation, ProgressToken, ProtocolVersion, RequestId};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};
use toolgate_spec::Unambiguous;

use crate::mcp::envelope::is_short;

/// What the SDK would take for a call, with every member looked at. An error says nothing but that it is for the SDK to read.
pub fn read(body: &[u8]) -> serde_json::Result<Message> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let message: Message = object(&mut reader)?;
    reader.end()?;
    if is_short(&message.id) { Ok(message) } else { Err(Error::custom("the id is too long")) }
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Message {
    #[serde(deserialize_with = "the_version")]
    jsonrpc: (),
    pub id: RequestId,
    #[serde(deserialize_with = "the_method")]
    method: (),
    #[serde(deserialize_with = "object")]
    pub params: Params,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Params {
    pub name: String,
    #[serde(default)]
    pub arguments: Option<Arguments>,
    #[serde(rename = "_meta", default)]
    pub meta: Meta,
}

/// What the client says beside the call. Names that nobody here knows are passed over, as the SDK does, but for those that
/// the protocol and we keep for ourselves.
#[derive(Debug, Default, PartialEq)]
pub struct Meta {
    /// Is it said that this is the stateless era?
    pub is_stateless: bool,
    pub client: Option<Implementation>,
    pub can: Option<ClientCapabilities>,
    pub progress: Option<ProgressToken>,
}

/// An object with one reading.
#[derive(Debug, PartialEq)]
pub struct Arguments(pub Map<String, Value>);

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Unambiguous::deserialize(deserializer)? {
            Unambiguous(Value::Object(members)) => Ok(Self(members)),
            _ => Err(D::Error::custom("no object")),
        }
    }
}

impl<'de> Deserialize<'de> for Meta {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MetaMembers)
    }
}

struct MetaMembers;

impl<'de> Visitor<'de> for MetaMembers {
    type Value = Meta;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Meta, A::Error> {
        let mut meta = Meta::default();
        let mut others: Vec<String> = Vec::new();
        while let Some(name) = members.next_key()? {
            let is_again = match name {
                Name::Version => {
                    members.next_value::<TheEra>()?;
                    std::mem::replace(&mut meta.is_stateless, true)
                }
                Name::Client => {
                    let Object(client) = members.next_value()?;
                    meta.client.replace(client).is_some()
                }
                Name::Can => {
                    let Object(can) = members.next_value()?;
                    meta.can.replace(can).is_some()
                }
                Name::Progress => meta.progress.replace(members.next_value()?).is_some(),
                Name::Other(name) if others.len() < MOST_OTHERS => {
                    let Unambiguous(_) = members.next_value()?;
                    let is_again = others.contains(&name);
                    others.push(name);
                    is_again
                }
                Name::Other(_) | Name::Reserved => return Err(A::Error::custom("for the SDK")),
            };
            if is_again {
                return Err(A::Error::custom("named twice"));
            }
        }
        Ok(meta)
    }
}

/// A name in `_meta`.
enum Name {
    Version,
    Client,
    Can,
    Progress,
    /// The protocol's or ours, and not known here.
    Reserved,
    Other(String),
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(NameText)
    }
}

struct NameText;

impl Visitor<'_> for NameText {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Name, E> {
        Ok(match text {
            "io.modelcontextprotocol/protocolVersion" => Name::Version,
            "io.modelcontextprotocol/clientInfo" => Name::Client,
            "io.modelcontextprotocol/clientCapabilities" => Name::Can,
            "progressToken" => Name::Progress,
            _ if RESERVED.iter().any(|prefix| text.starts_with(prefix)) => Name::Reserved,
            _ => Name::Other(text.to_owned()),
        })
    }
}

/// An object and nothing else: by itself a struct would also be read from a list of its members in their order, which the
/// SDK takes for no message.
fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(Members(PhantomData))
}

/// An object with one reading: also members that `T` does not know are named once.
struct Object<T>(T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Arguments(members) = Arguments::deserialize(deserializer)?;
        serde_json::from_value(Value::Object(members)).map(Self).map_err(D::Error::custom)
    }
}

struct Members<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for Members<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}

struct TheEra;

impl<'de> Deserialize<'de> for TheEra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        exactly(ProtocolVersion::V_2026_07_28.as_str(), deserializer).map(|()| Self)
    }
}

fn the_version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    exactly("2.0", deserializer)
}

fn the_method<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    exactly(super::METHOD, deserializer)
}

fn exactly<'de, D: Deserializer<'de>>(expected: &str, deserializer: D) -> Result<(), D::Error> {
    // Borrowed: a text with escapes in it is not plain.
    let text = <&str>::deserialize(deserializer)?;
    if text == expected { Ok(()) } else { Err(D::Error::custom("another")) }
}

/// What they say may matter, and the SDK and the long way know how.
const RESERVED: [&str; 2] = ["io.modelcontextprotocol/", "dev.toolgate/"];
/// More are for somebody with more patience to compare.
const MOST_OTHERS: usize = 8;
