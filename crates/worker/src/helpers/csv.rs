//! CSV parser: RFC 4180, read leniently. Rows may differ in length, empty lines and a byte order mark are skipped,
//! every value is a string, and an open quote ends with the text.
//!
//! With a header, each further row becomes an object. Short rows lack the last keys, values beyond the header are
//! dropped, and the last of two equal column names wins.

#[cfg(test)]
mod tests;

use csv::{Reader, ReaderBuilder, StringRecord};
use serde::Deserialize;

use super::{HelperAnswer, HelperError};

/// JSON `[text, {header, delimiter}]` becomes an array of arrays or objects.
pub fn parse(text: &str) -> Result<HelperAnswer, HelperError> {
    // In JSON, quotes and line ends take two bytes.
    if text.len() > 2 * MAX_INPUT {
        return Err(too_large());
    }
    let (table, options): (String, CsvOptions) = serde_json::from_str(text).map_err(|_| {
        HelperError::invalid(HELPER, "invalid-options", "options are {header: boolean, delimiter: string}")
    })?;
    let delimiter = delimiter(&options.delimiter)?;
    // Every parsed value costs eight extra bytes, and a row is parsed as a whole. Delimiters inside quotes count, too:
    // only the parser knows whether a quote opens a value, and a wrong guess would bypass the limit.
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
    Ok(HelperAnswer::Json(json))
}

/// Reads the next row into the memory of the last one.
fn read(reader: &mut Reader<&[u8]>, row: &mut StringRecord) -> Result<bool, HelperError> {
    reader.read_record(row).map_err(|error| HelperError::runtime(HELPER, "parse-failed", error.to_string()))
}

#[derive(Deserialize)]
#[serde(default)]
struct CsvOptions {
    header: bool,
    delimiter: String,
}

impl Default for CsvOptions {
    fn default() -> Self {
        Self { header: false, delimiter: ",".to_owned() }
    }
}

/// Only the first character counts; an empty delimiter means a comma.
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

/// Returns column and JSON name of each key; the last column wins for equal names.
fn keys(header: &StringRecord) -> Result<Vec<(usize, String)>, HelperError> {
    // If all rows are shorter, the output limit does not bound the number of kept names.
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
    // A row without named values still takes two bytes.
    within_output(json)
}

/// Checked for every value: one row may be the whole table, and a long header is repeated for every row.
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
/// A value takes at least two quotes and a comma, so more values never fit.
const MAX_VALUES: usize = MAX_OUTPUT / 3;
const MAX_COLUMNS: usize = 250_000;
