//! stub
use super::{Answer, HelperError};
pub fn random(_text: &str) -> Result<Answer, HelperError> { Err(HelperError::runtime("random", "absent", "not here yet")) }
pub fn digest(_text: &str, _bytes: &[u8]) -> Result<Answer, HelperError> { Err(HelperError::runtime("digest", "absent", "not here yet")) }
pub fn hmac_sign(_text: &str, _bytes: &[u8]) -> Result<Answer, HelperError> { Err(HelperError::runtime("hmac_sign", "absent", "not here yet")) }
pub fn hmac_verify(_text: &str, _bytes: &[u8]) -> Result<Answer, HelperError> { Err(HelperError::runtime("hmac_verify", "absent", "not here yet")) }
pub fn aes_gcm_encrypt(_text: &str, _bytes: &[u8]) -> Result<Answer, HelperError> { Err(HelperError::runtime("aes_gcm_encrypt", "absent", "not here yet")) }
pub fn aes_gcm_decrypt(_text: &str, _bytes: &[u8]) -> Result<Answer, HelperError> { Err(HelperError::runtime("aes_gcm_decrypt", "absent", "not here yet")) }
pub fn hkdf(_text: &str, _bytes: &[u8]) -> Result<Answer, HelperError> { Err(HelperError::runtime("hkdf", "absent", "not here yet")) }
pub fn pbkdf2(_text: &str, _bytes: &[u8]) -> Result<Answer, HelperError> { Err(HelperError::runtime("pbkdf2", "absent", "not here yet")) }
