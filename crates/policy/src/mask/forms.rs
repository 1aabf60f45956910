//! The encodings of a secret that are searched for.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};

use super::{SHORTEST, view};

/// The secret, reversed, in hexadecimal and in base64. Escapes are decoded in the text instead.
pub(super) fn forms(secret: &str) -> Vec<Vec<u8>> {
    let backwards: String = secret.chars().rev().collect();
    let mut forms = readings(backwards.as_bytes());
    for bytes in encodings(secret) {
        forms.extend(readings(&bytes));
        let hex = bytes.iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        forms.push(hex.to_uppercase().into_bytes());
        forms.push(hex.into_bytes());
        forms.extend(base64(&bytes));
    }
    forms
}

/// UTF-8, and one byte per character as in `btoa` and `escape`.
fn encodings(secret: &str) -> Vec<Vec<u8>> {
    let mut encodings = vec![secret.as_bytes().to_vec()];
    if secret.chars().any(|character| matches!(character, '\u{80}'..='\u{ff}')) {
        encodings.push(secret.chars().fold(Vec::new(), |mut bytes, character| {
            if let Ok(byte) = u8::try_from(character) {
                bytes.push(byte);
            } else {
                bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            bytes
        }));
    }
    encodings
}

/// A secret may contain text that looks like an escape. Then also search for it with that escape decoded.
fn readings(secret: &[u8]) -> Vec<Vec<u8>> {
    let mut readings = vec![secret.to_vec()];
    view::for_each_view(secret, |bytes, _| readings.push(bytes.to_vec()));
    let with_plus: Vec<Vec<u8>> = readings.iter().map(|bytes| view::with_plus_for_space(bytes)).collect();
    readings.extend(with_plus);
    readings.retain(|bytes| String::from_utf8_lossy(bytes).chars().count() >= SHORTEST);
    readings
}

/// All three alignments and both alphabets, without the end characters that depend on neighbouring bytes.
fn base64(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for alignment in 0..3 {
        let padded = [&vec![0; alignment], bytes].concat();
        let encoded = STANDARD_NO_PAD.encode(&padded);
        let first = (alignment * 8).div_ceil(6);
        let whole = padded.len() * 8 / 6;
        if let Some(stable) = encoded.get(first..whole).filter(|stable| stable.len() >= SHORTEST) {
            forms.push(stable.replace('+', "-").replace('/', "_").into_bytes());
            forms.push(stable.as_bytes().to_vec());
        }
    }
    forms
}
