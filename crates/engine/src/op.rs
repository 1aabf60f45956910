//! Operations that JavaScript can request from its host, by number.
//!
//! Shared with the build script, which writes the same names into the prelude as `OP`.

macro_rules! ops {
    ($($(#[$doc:meta])* $variant:ident = $number:literal as $name:literal;)+) => {
        /// One request to the host. The worker answers `1..100`; the gateway decides the rest.
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum Op { $($(#[$doc])* $variant = $number),+ }

        impl Op {
            pub const ALL: &[(Self, &'static str)] = &[$((Self::$variant, $name)),+];

            pub const fn from_number(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)+
                    _ => None,
                }
            }

            pub const fn number(self) -> i32 {
                self as i32
            }
        }
    };
}

ops! {
    /// Text: the letter of the level (`l i w e d`) and the line.
    Console = 1 as "CONSOLE";
    /// Text: milliseconds. Returns after that time or at the deadline.
    Sleep = 2 as "SLEEP";
    /// Text: the number of bytes. Returns random bytes.
    Random = 3 as "RANDOM";
    /// Text. Returns its UTF-8 bytes, with U+FFFD for lone surrogates.
    Utf8Encode = 4 as "UTF8_ENCODE";
    /// Bytes, and as text an encoding name, `fatal` or `replace`, and `keep` or `strip` for the byte order mark,
    /// separated by spaces. With `fatal`, invalid bytes return nothing.
    Decode = 5 as "DECODE";
    /// Text: the label of an encoding. Returns its name, or nothing.
    EncodingName = 6 as "ENCODING_NAME";
    /// JSON `[input, base or null]`. Returns a JSON array of the URL's parts, or nothing.
    UrlParse = 10 as "URL_PARSE";
    /// JSON `[href, part, value]`. Returns the parts of the changed URL, or nothing.
    UrlSet = 11 as "URL_SET";
    /// Text: the algorithm. Bytes: the data.
    Digest = 20 as "DIGEST";
    /// JSON `{hash, keyLength}`. Bytes: the key and the data.
    HmacSign = 21 as "HMAC_SIGN";
    /// JSON `{hash, keyLength, signatureLength}`. Bytes: the key, the signature and the data. Returns JSON `true` or
    /// `false`.
    HmacVerify = 22 as "HMAC_VERIFY";
    /// JSON `{keyLength, ivLength, aadLength}`. Bytes: key, nonce, additional data, plaintext.
    AesGcmEncrypt = 23 as "AES_GCM_ENCRYPT";
    /// Like `AesGcmEncrypt`, with the ciphertext and its tag.
    AesGcmDecrypt = 24 as "AES_GCM_DECRYPT";
    /// JSON `{hash, keyLength, saltLength, length}`. Bytes: key, salt, info.
    Hkdf = 25 as "HKDF";
    /// JSON `{hash, keyLength, iterations, length}`. Bytes: password, salt.
    Pbkdf2 = 26 as "PBKDF2";
    /// JSON `[epoch milliseconds, zone]`. Returns the zone's local time as a JSON array.
    ZonedTime = 30 as "ZONED_TIME";
    /// Text: the name of a time zone. Returns its canonical spelling, or nothing.
    ZoneName = 31 as "ZONE_NAME";
    /// JSON `[locale, settings, text, text]`. Returns `-1`, `0` or `1`, or nothing for an invalid locale. The settings
    /// are four characters, the last three `-` for the locale's default: sensitivity (`b a c v`), numeric (`0 1`), the
    /// case that sorts first (`u l 0`), and whether punctuation is ignored (`0 1`).
    Collate = 32 as "COLLATE";
    /// JSON `[locale, settings]`. Returns the effective JSON `[numeric, caseFirst, ignorePunctuation]`, or nothing for
    /// an invalid locale.
    Collator = 33 as "COLLATOR";
    /// Text: the granularity, a space, the locale, a line feed and the text. Returns the ends of the segments as 32-bit
    /// little-endian UTF-16 offsets, with the highest bit set for words; or nothing for an invalid locale.
    Segment = 34 as "SEGMENT";
    /// Text: `language`, `region`, `script` or `currency`, a space and the code. Returns its English name, or nothing.
    DisplayName = 35 as "DISPLAY_NAME";
    /// Text: an HTML page. Returns a tree.
    ParseHtml = 40 as "PARSE_HTML";
    ParseXml = 41 as "PARSE_XML";
    /// JSON `[text, {header, delimiter}]`.
    ParseCsv = 42 as "PARSE_CSV";
    ParseYaml = 43 as "PARSE_YAML";
    /// JSON: the request. Bytes: its body. Returns JSON with the id of the response body.
    Fetch = 100 as "FETCH";
    /// Text: the id of a fetched body. Each request returns it again.
    FetchedText = 101 as "FETCHED_TEXT";
    FetchedBytes = 102 as "FETCHED_BYTES";
    /// JSON `[function, …arguments]`.
    Files = 110 as "FILES";
}
