//! Bytes as hexadecimal digits.
//!
//! Promises: two digits a byte, in lower case.
//! Does not: read them back, or hash.

/// Two digits a byte. Not `format!`, which costs more than hashing a short text.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
    let mut out = String::with_capacity(bytes.len() * 2);
    out.extend(bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 0xf)]));
    out
}

/// The first `count` bytes (all, where there are fewer).
#[must_use]
pub fn hex_of_first(count: usize, bytes: &[u8]) -> String {
    hex(bytes.get(..count).unwrap_or(bytes))
}

/// Whether `text` is a SHA-256 as [`hex`] writes it.
#[must_use]
pub fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_two_digits_each_in_lower_case() {
        assert_eq!((hex(&[0, 9, 0xab, 0xff]).as_str(), hex(&[]).as_str()), ("0009abff", ""));
        assert_eq!((hex_of_first(1, &[0xab, 1]).as_str(), hex_of_first(9, &[0xab, 1]).as_str()), ("ab", "ab01"));
    }

    #[test]
    fn a_sha_256_has_64_digits_in_lower_case() {
        let one = hex(&[0xa7; 32]);
        assert!(is_sha256(&one) && !is_sha256(&one.to_uppercase()) && !is_sha256(one.trim_end_matches('7')) && !is_sha256(&"g".repeat(64)));
    }
}
