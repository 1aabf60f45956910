//! Parameters of a tool.

/// One parameter, in declared order.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Param {
    pub name: String,
    pub description: String,
    pub required: bool,
    pub kind: ParamType,
    /// The value for the Local Pass; always text, parsed into the declared type.
    pub test_value: Option<String>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ParamType {
    String,
    Integer,
    Number,
    Boolean,
    Object,
    Array,
}

impl ParamType {
    pub const ALL: [Self; 6] =
        [Self::String, Self::Integer, Self::Number, Self::Boolean, Self::Object, Self::Array];

    /// The name in documents.
    pub const fn spec_name(self) -> &'static str {
        match self {
            Self::String => "STRING",
            Self::Integer => "INTEGER",
            Self::Number => "NUMBER",
            Self::Boolean => "BOOLEAN",
            Self::Object => "OBJECT",
            Self::Array => "ARRAY",
        }
    }

    /// The name in JSON Schema.
    pub const fn schema_name(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Object => "object",
            Self::Array => "array",
        }
    }

    pub fn from_spec_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.spec_name() == name)
    }
}
