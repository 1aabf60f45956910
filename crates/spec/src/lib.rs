//! The tool document: model, parsing, validation, lints, digest and projections.
//!
//! Pure: results depend only on arguments. No clock, disk, environment or socket.
#![forbid(unsafe_code)]

mod arg_template;
mod block;
mod bundle;
mod capability_value;
mod check;
mod code;
mod deceptive;
mod decode;
mod digest;
mod edit;
mod field_path;
mod finding;
mod glob;
mod helper;
mod host;
mod identifier;
mod invariant;
mod lint;
pub mod model;
mod path_pattern;
mod placeholder;
mod pointer;
pub mod project;
mod read;
mod schema;
mod similar;
mod source;
mod test_value;

pub use arg_template::{ArgPart, ArgTemplate};
pub use bundle::{BundleEntry, BundleError, build_bundle, split_bundle, to_json_text, to_yaml_text};
pub use capability_value::{capability_from_value, value_from_text};
pub use check::{FileCheck, FileKind, MAX_FINDINGS, ToolCheck, check, check_in_code, check_text, locate};
pub use code::{Code, Severity};
pub use deceptive::{is_deceptive, neutral};
pub use digest::{ToolDigest, digest, reviewed_form};
pub use edit::{EditError, FieldChange, edit, edit_in_bundle, stamp};
pub use field_path::{FieldPattern, FieldStep};
pub use finding::Finding;
pub use host::{HostNames, HostPattern};
pub use identifier::is_identifier;
pub use invariant::{
    decides_what_runs, loads_code, program_family, refuse_program_file, starts_other_programs,
};
pub use lint::{DeniedHelpers, MissingHelper, helpers_of, missing_helpers, name_looks};
pub use path_pattern::{PathPattern, PathRoots};
pub use placeholder::{Template, TemplatePart, is_variable_name};
pub use pointer::Pointer;
pub use read::Unambiguous;
pub use schema::{CompiledSchema, Schema, Violation};
pub use similar::distance as edit_distance;
pub use source::{Format, LineIndex, MAX_FILE_BYTES, SourcePosition, SourceSpan};
pub use test_value::parse as parse_test_value;
