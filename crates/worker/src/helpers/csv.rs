//! What does a table in comma-separated values hold? RFC 4180, read forgivingly: rows may differ in length, empty lines
//! are left out, a byte order mark is no data, every value is a text, and an open quote ends with the text.
//!
//! With a header each further row becomes an object. A row that is too short lacks the last keys, values beyond the
//! header have no name and are left out, and of two columns with one name the last wins.

#[cfg(test)]
mod tests;

use csv::{Reader, ReaderBuilder, StringRecord};
use serde::Deserialize;

use super::{Answer, HelperError};

/// JSON `[text, {header, delimiter}]` becomes an array of arrays, or of objects.
pub fn parse(text: &str) -> Result<Answer, HelperError> {
    // In JSON, quotes and line ends take two bytes.
    if text.len() > 2 * MAX_INPUT {
        return Err(too_large());
    }
    let (table, options): (String, Options) = serde_json::from_str(text).map_err(|_| {
        HelperError::invalid(HELPER, "invalid-options", "options are {header: boolean, delimiter: string}")
    })?;
    let delimiter = delimiter(&options.delimiter)?;
    // Every value that is read costs eight bytes beside its own, and a row is read as a whole. Delimiters inside of
    // quotes count too: whether a quote opens a value is the reader's to say, and guessing wrong would let a row through.
    let delimiters = table.bytes().filter(|byte| *byte == delimiter).count();
    if table.len() > MAX_INPUT || delimiters > MAX_VALUES {
        return Err(too_large());
    }
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter)
        .from_reader(table.strip_prefix('\u{feff}').unwrap_or(&table).as_bytes());
    let mut row = StringRecord::new();
    let keys = if options.header && read(&mut reader, &mut row)? { Some(keys(&row)?) } else { None };
    let mut json = String::from("[");
    while read(&mut reader, &mut row)? {
        if json.len() > 1 {
            json.push(',');
        }
        match &keys {
            None => push_array(&mut json, &row)?,
            Some(keys) => push_object(&mut json, keys, &row)?,
        }
    }
    json.push(']');
    Ok(Answer::Json(json))
}

/// The next row, into the memory of the last one.
fn read(reader: &mut Reader<&[u8]>, row: &mut StringRecord) -> Result<bool, HelperError> {
    reader.read_record(row).map_err(|error| HelperError::runtime(HELPER, "parse-failed", error.to_string()))
}

#[derive(Deserialize)]
#[serde(default)]
struct Options {
    header: bool,
    delimiter: String,
}

impl Default for Options {
    fn default() -> Self {
        Self { header: false, delimiter: ",".to_owned() }
    }
}

/// Only the first character counts; none means a comma.
fn delimiter(text: &str) -> Result<u8, HelperError> {
    let first = text.chars().next().unwrap_or(',');
    u8::try_from(first)
        .ok()
        .filter(|byte| byte.is_ascii() && !matches!(byte, b'"' | b'\r' | b'\n' | 0))
        .ok_or_else(|| {
            let message = format!(
                "`{}` cannot separate values; use an ASCII character such as a semicolon",
                first.escape_debug()
            );
            HelperError::invalid(HELPER, "invalid-delimiter", message)
        })
}

/// The column and the name, as JSON, of each key; of those with one name only the last.
fn keys(header: &StringRecord) -> Result<Vec<(usize, String)>, HelperError> {
    // Rows may all be shorter, so what is written down does not bound the names that are kept.
    if header.len() > MAX_COLUMNS {
        return Err(too_large());
    }
    let mut last = std::collections::HashMap::new();
    for (column, name) in header.iter().enumerate() {
        last.insert(name, column);
    }
    let is_last = |(column, name): &(usize, &str)| last.get(name) == Some(column);
    Ok(header.iter().enumerate().filter(is_last).map(|(column, name)| (column, quote(name))).collect())
}

fn push_array(json: &mut String, row: &StringRecord) -> Result<(), HelperError> {
    json.push('[');
    for (column, value) in row.iter().enumerate() {
        if column > 0 {
            json.push(',');
        }
        json.push_str(&quote(value));
        within_output(json)?;
    }
    json.push(']');
    Ok(())
}

fn push_object(json: &mut String, keys: &[(usize, String)], row: &StringRecord) -> Result<(), HelperError> {
    json.push('{');
    let named = keys.iter().filter_map(|(column, key)| Some((key, row.get(*column)?)));
    for (position, (key, value)) in named.enumerate() {
        if position > 0 {
            json.push(',');
        }
        json.push_str(key);
        json.push(':');
        json.push_str(&quote(value));
        within_output(json)?;
    }
    json.push('}');
    // A row of no named value still takes two bytes.
    within_output(json)
}

/// Asked for every value: one row may be the whole table, and a long header is said again for every row.
fn within_output(json: &str) -> Result<(), HelperError> {
    if json.len() > MAX_OUTPUT { Err(too_large()) } else { Ok(()) }
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn too_large() -> HelperError {
    let message = format!(
        "the table is larger than 16 MiB, {MAX_VALUES} values or {MAX_COLUMNS} named columns; split it first"
    );
    HelperError::runtime(HELPER, "result-too-large", message)
}

const HELPER: &str = "safety.parser.csv";
const MAX_INPUT: usize = 16 << 20;
const MAX_OUTPUT: usize = 16 << 20;
/// A value takes two quotes and a comma at least, so that more never fit the answer.
const MAX_VALUES: usize = MAX_OUTPUT / 3;
const MAX_COLUMNS: usize = 250_000;
