//! What does a table in comma-separated values hold? RFC 4180, read forgivingly: rows may differ in length, empty lines
//! are left out, a byte order mark is no data, every value is a text, and an open quote ends with the text.
//!
//! With a header each further row becomes an object. A row that is too short lacks the last keys, values beyond the
//! header have no name and are left out, and of two columns with one name the last wins.

#[cfg(test)]
mod tests;

use csv::{ReaderBuilder, StringRecord};
use serde::Deserialize;

use super::{Answer, HelperError};

/// JSON `[text, {header, delimiter}]` becomes an array of arrays, or of objects.
pub fn parse(text: &str) -> Result<Answer, HelperError> {
    let (table, options): (String, Options) = serde_json::from_str(text).map_err(|_| {
        HelperError::invalid(HELPER, "invalid-options", "options are {header: boolean, delimiter: string}")
    })?;
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .delimiter(delimiter(&options.delimiter)?)
        .from_reader(table.strip_prefix('\u{feff}').unwrap_or(&table).as_bytes());
    let mut rows = reader.records();
    let header = if options.header { rows.next().transpose().map_err(|error| failed(&error))? } else { None };
    let keys = header.as_ref().map(keys);
    let mut json = String::from("[");
    for row in rows {
        let row = row.map_err(|error| failed(&error))?;
        if json.len() > 1 {
            json.push(',');
        }
        match &keys {
            None => push_array(&mut json, &row),
            Some(keys) => push_object(&mut json, keys, &row),
        }
        // Checked for every row: a long header, repeated for many short ones, grows far beyond the text.
        if json.len() > MAX_OUTPUT {
            return Err(HelperError::runtime(
                HELPER,
                "result-too-large",
                "the table is larger than 16 MiB; split it first",
            ));
        }
    }
    json.push(']');
    Ok(Answer::Json(json))
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
fn keys(header: &StringRecord) -> Vec<(usize, String)> {
    let mut last = std::collections::HashMap::new();
    for (column, name) in header.iter().enumerate() {
        last.insert(name, column);
    }
    let is_last = |(column, name): &(usize, &str)| last.get(name) == Some(column);
    header.iter().enumerate().filter(is_last).map(|(column, name)| (column, quote(name))).collect()
}

fn push_array(json: &mut String, row: &StringRecord) {
    json.push('[');
    for (column, value) in row.iter().enumerate() {
        if column > 0 {
            json.push(',');
        }
        json.push_str(&quote(value));
    }
    json.push(']');
}

fn push_object(json: &mut String, keys: &[(usize, String)], row: &StringRecord) {
    json.push('{');
    let named = keys.iter().filter_map(|(column, key)| Some((key, row.get(*column)?)));
    for (position, (key, value)) in named.enumerate() {
        if position > 0 {
            json.push(',');
        }
        json.push_str(key);
        json.push(':');
        json.push_str(&quote(value));
    }
    json.push('}');
}

fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn failed(error: &csv::Error) -> HelperError {
    HelperError::runtime(HELPER, "parse-failed", error.to_string())
}

const HELPER: &str = "safety.parser.csv";
const MAX_OUTPUT: usize = 16 << 20;
