//! What can JavaScript ask its host for? The numbers by which prelude and worker understand each other.
//!
//! Shared with the build script, which writes the same names into the prelude as `OP`.

macro_rules! ops {
    ($($(#[$doc:meta])* $variant:ident = $number:literal as $name:literal;)+) => {
        /// One question to the host. `1..100` are answered in the worker, the rest are the gateway's to decide.
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
    /// Text: the level's letter (`l i w e d`) and the line.
    Console = 1 as "CONSOLE";
    /// Text: milliseconds. Returns after that time or at the deadline.
    Sleep = 2 as "SLEEP";
    /// Text: how many. Bytes come back.
    Random = 3 as "RANDOM";
    /// Text. Its UTF-8 bytes come back; lone surrogates have become U+FFFD.
    Utf8Encode = 4 as "UTF8_ENCODE";
    /// Bytes, and as text the encoding's name, `fatal` or `replace`, and `keep` or `strip` for the byte order mark, parted
    /// by spaces. Nothing comes back for bytes that `fatal` does not let pass.
    Decode = 5 as "DECODE";
    /// Text: an encoding's label. Its name comes back, or nothing.
    EncodingName = 6 as "ENCODING_NAME";
    /// JSON `[input, base or null]`; a JSON array of the URL's parts comes back, or nothing.
    UrlParse = 10 as "URL_PARSE";
    /// JSON `[href, part, value]`; the parts of the changed URL come back, or nothing.
    UrlSet = 11 as "URL_SET";
    /// Text: the algorithm. Bytes: the data.
    Digest = 20 as "DIGEST";
    /// JSON `{hash, keyLength}`. Bytes: the key and the data.
    HmacSign = 21 as "HMAC_SIGN";
    /// JSON `{hash, keyLength, signatureLength}`. Bytes: the key, the signature and the data. JSON `true` or `false` comes back.
    HmacVerify = 22 as "HMAC_VERIFY";
    /// JSON `{keyLength, ivLength, aadLength}`. Bytes: key, nonce, additional data, plaintext.
    AesGcmEncrypt = 23 as "AES_GCM_ENCRYPT";
    /// As `AesGcmEncrypt`, with the ciphertext and its tag.
    AesGcmDecrypt = 24 as "AES_GCM_DECRYPT";
    /// JSON `{hash, keyLength, saltLength, length}`. Bytes: key, salt, info.
    Hkdf = 25 as "HKDF";
    /// JSON `{hash, keyLength, iterations, length}`. Bytes: password, salt.
    Pbkdf2 = 26 as "PBKDF2";
    /// JSON `[epoch milliseconds, zone]`; the zone's wall clock comes back as a JSON array.
    ZonedTime = 30 as "ZONED_TIME";
    /// Text: a time zone's name. Its canonical spelling comes back, or nothing.
    ZoneName = 31 as "ZONE_NAME";
    /// JSON `[locale, settings, text, text]`; `-1`, `0` or `1` comes back, or nothing for an invalid locale. The settings
    /// are four characters, the last three `-` for the locale's default: sensitivity (`b a c v`), numeric (`0 1`), the case
    /// that comes first (`u l 0`), and whether punctuation is ignored (`0 1`).
    Collate = 32 as "COLLATE";
    /// JSON `[locale, settings]`; JSON `[numeric, caseFirst, ignorePunctuation]` as used comes back, or nothing for an
    /// invalid locale.
    Collator = 33 as "COLLATOR";
    /// Text: the granularity, a space, the locale, a line feed and the text. The segments' ends come back as 32-bit
    /// little-endian UTF-16 offsets, with the highest bit set for words; or nothing for an invalid locale.
    Segment = 34 as "SEGMENT";
    /// Text: `language`, `region`, `script` or `currency`, a space and the code. Its English name comes back, or nothing.
    DisplayName = 35 as "DISPLAY_NAME";
    /// Text: a page. A tree comes back.
    ParseHtml = 40 as "PARSE_HTML";
    ParseXml = 41 as "PARSE_XML";
    /// JSON `[text, {header, delimiter}]`.
    ParseCsv = 42 as "PARSE_CSV";
    ParseYaml = 43 as "PARSE_YAML";
    /// JSON: the request. Bytes: its body. JSON comes back, with the id of the body.
    Fetch = 100 as "FETCH";
    /// Text: the id of a fetched body, which is handed over once more for each question.
    FetchedText = 101 as "FETCHED_TEXT";
    FetchedBytes = 102 as "FETCHED_BYTES";
    /// JSON `[function, …arguments]`.
    Files = 110 as "FILES";
}
