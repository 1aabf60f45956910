use async_compression::tokio::bufread::{BrotliEncoder, GzipEncoder, ZlibEncoder};
use http::HeaderValue;

use super::*;

async fn all(mut reader: impl AsyncRead + Unpin) -> Vec<u8> {
    let mut bytes = Vec::new();
    reader.read_to_end(&mut bytes).await.unwrap();
    bytes
}

async fn packed(coding: ContentCoding, plain: &[u8]) -> Vec<u8> {
    match coding {
        ContentCoding::Gzip => all(GzipEncoder::new(plain)).await,
        ContentCoding::Deflate => all(ZlibEncoder::new(plain)).await,
        ContentCoding::Brotli => all(BrotliEncoder::new(plain)).await,
    }
}

const CODINGS: [ContentCoding; 3] = [ContentCoding::Gzip, ContentCoding::Deflate, ContentCoding::Brotli];

#[tokio::test]
async fn bodies_are_decompressed_up_to_the_limit() {
    let plain = vec![b'x'; 200_000];
    for coding in CODINGS {
        let packed = packed(coding, &plain).await;
        assert_eq!(decompress(coding, &packed, plain.len()).await.unwrap(), plain, "{coding:?}");
        let error = decompress(coding, &packed, plain.len() - 1).await.unwrap_err();
        assert_eq!(error.slug(), "response-body-too-large", "{coding:?}");
    }
}

#[tokio::test]
async fn second_gzip_member_counts_against_the_limit() {
    let mut two = packed(ContentCoding::Gzip, &vec![b'x'; 60_000]).await;
    two.extend(two.clone());
    assert_eq!(decompress(ContentCoding::Gzip, &two, 120_000).await.unwrap().len(), 120_000);
    assert_eq!(
        decompress(ContentCoding::Gzip, &two, 100_000).await.unwrap_err().slug(),
        "response-body-too-large"
    );
}

#[tokio::test]
async fn broken_and_cut_off_bodies_are_errors() {
    // Compresses badly, so a cut always hits data.
    let plain: Vec<u8> =
        (0..50_000_u32).flat_map(|number| number.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    for coding in CODINGS {
        let mut packed = packed(coding, &plain).await;
        packed.truncate(packed.len() / 2);
        let error = decompress(coding, &packed, 1_000_000).await.unwrap_err();
        assert_eq!(error.slug(), "invalid-encoding", "{coding:?}");
    }
    for coding in [ContentCoding::Gzip, ContentCoding::Deflate] {
        assert_eq!(decompress(coding, b"plain text", 1_000).await.unwrap_err().slug(), "invalid-encoding");
    }
}

#[test]
fn one_known_coding_is_understood() {
    let of = |values: &[&'static str]| {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(CONTENT_ENCODING, HeaderValue::from_static(value));
        }
        ContentCoding::of(&headers).map_err(|error| error.slug())
    };
    assert_eq!(of(&[]), Ok(None));
    assert_eq!(of(&["identity"]), Ok(None));
    assert_eq!(of(&["GZip"]), Ok(Some(ContentCoding::Gzip)));
    assert_eq!(of(&["identity, br"]), Ok(Some(ContentCoding::Brotli)));
    assert_eq!(of(&["deflate"]), Ok(Some(ContentCoding::Deflate)));
    for values in [&["gzip, gzip"][..], &["gzip", "br"], &["zstd"], &["gzip, zstd"]] {
        assert_eq!(of(values), Err("unsupported-encoding"), "{values:?}");
    }
}
