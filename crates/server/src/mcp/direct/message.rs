//! A strict, fast reader of direct `tools/call` messages.

use std::{fmt, marker::PhantomData};

use rmcp::model::{ClientCapabilities, Implementation, ProgressToken, ProtocolVersion, RequestId};
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};
use toolgate_spec::Unambiguous;

use crate::mcp::envelope::is_short;

/// Reads a direct call. An error only means that the SDK has to read the message.
pub fn read(body: &[u8]) -> serde_json::Result<CallMessage> {
    let mut reader = serde_json::Deserializer::from_slice(body);
    let message: CallMessage = object(&mut reader)?;
    reader.end()?;
    if is_short(&message.id) { Ok(message) } else { Err(Error::custom("the id is too long")) }
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct CallMessage {
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
    pub arguments: Option<ArgumentObject>,
    #[serde(rename = "_meta", default)]
    pub meta: Meta,
}

/// `_meta` of the call. Unknown members are ignored, as the SDK does. Unknown members with a reserved prefix make the message
/// one for the SDK.
#[derive(Debug, Default, PartialEq)]
pub struct Meta {
    /// It names the stateless protocol version.
    pub is_stateless: bool,
    pub client: Option<Implementation>,
    pub can: Option<ClientCapabilities>,
    pub progress: Option<ProgressToken>,
}

/// A JSON object without duplicate members.
#[derive(Debug, PartialEq)]
pub struct ArgumentObject(pub Map<String, Value>);

impl<'de> Deserialize<'de> for ArgumentObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Unambiguous::deserialize(deserializer)? {
            Unambiguous(Value::Object(members)) => Ok(Self(members)),
            _ => Err(D::Error::custom("not an object")),
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
            let is_duplicate = match name {
                Name::Version => {
                    members.next_value::<StatelessVersion>()?;
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
                    let is_duplicate = others.contains(&name);
                    others.push(name);
                    is_duplicate
                }
                Name::Other(_) | Name::Reserved => return Err(A::Error::custom("for the SDK")),
            };
            if is_duplicate {
                return Err(A::Error::custom("duplicate member"));
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
    /// Unknown, with a prefix of the protocol or of Toolgate.
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

/// Accepts objects only. serde also reads a struct from an array of its members, which the SDK rejects.
fn object<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    deserializer.deserialize_map(ObjectVisitor(PhantomData))
}

/// An object without duplicate members, including those that `T` does not know.
struct Object<T>(T);

impl<'de, T: DeserializeOwned> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let ArgumentObject(members) = ArgumentObject::deserialize(deserializer)?;
        serde_json::from_value(Value::Object(members)).map(Self).map_err(D::Error::custom)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(members))
    }
}

struct StatelessVersion;

impl<'de> Deserialize<'de> for StatelessVersion {
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
    // Borrowed: a string with escapes goes to the SDK.
    let text = <&str>::deserialize(deserializer)?;
    if text == expected { Ok(()) } else { Err(D::Error::custom("another value")) }
}

/// Members with these prefixes may change the meaning of a call. Only the SDK entrance reads all of them.
const RESERVED: [&str; 2] = ["io.modelcontextprotocol/", "dev.toolgate/"];
/// Limit of unknown members, because finding duplicates compares all pairs.
const MOST_OTHERS: usize = 8;
