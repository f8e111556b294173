//! Files that are not UTF-8: UTF-16 with its mark, ISO-8859-1 and windows-1252 where the XML declares them.
//!
//! Promises: a file in UTF-8 is not copied; another is decoded whole and may be only so big; an encoding that is not known is named, and
//! matters only where the file turns out to hold tests.
//! Does not: guess an encoding from what text looks like.

use std::io::{Cursor, Read as _, Seek as _, SeekFrom};

use sha2::{Digest as _, Sha256};

use crate::importers::{Input, Refused, unreadable};

const HEAD_BYTES: u64 = 512;
/// What windows-1252 has where ISO-8859-1 has control characters. Five places are empty.
const WINDOWS: [char; 32] = [
    '€', '\u{FFFD}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{FFFD}', 'Ž', '\u{FFFD}', '\u{FFFD}', '‘', '’', '“', '”',
    '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{FFFD}', 'ž', 'Ÿ',
];

/// A file as UTF-8.
pub(super) struct Utf8<'a> {
    pub(super) input: Box<dyn Input + 'a>,
    /// The digest of the bytes as they stand in the file, where they had to be decoded.
    pub(super) digest: Option<[u8; 32]>,
    /// Why the file cannot be read if it should hold tests.
    pub(super) unknown: Option<String>,
}

/// `input` as UTF-8; of another encoding at most `bytes_max`.
pub(super) fn utf8<'a>(mut input: Box<dyn Input + 'a>, bytes_max: u64) -> Result<Utf8<'a>, Refused> {
    let mut head = Vec::new();
    input.by_ref().take(HEAD_BYTES).read_to_end(&mut head).map_err(unreadable)?;
    input.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let decode: fn(&[u8]) -> String = match head.as_slice() {
        [0xFF, 0xFE, ..] => |bytes| utf16(bytes, u16::from_le_bytes),
        [0xFE, 0xFF, ..] => |bytes| utf16(bytes, u16::from_be_bytes),
        _ => match declared(&head).as_deref() {
            // A declared UTF-16 that can be read as this is none: the text was re-encoded, and the declaration left.
            None | Some("utf-8" | "utf8" | "us-ascii" | "ascii" | "utf-16") => return Ok(Utf8 { input, digest: None, unknown: None }),
            Some("iso-8859-1" | "latin1" | "iso8859-1" | "iso_8859-1") => |bytes| bytes.iter().copied().map(char::from).collect(),
            Some("windows-1252" | "cp1252") => |bytes| bytes.iter().copied().map(windows).collect(),
            Some(other) => {
                let unknown =
                    format!("its encoding is \"{}\"; UTF-8, UTF-16, ISO-8859-1 and windows-1252 can be read", other.escape_debug());
                return Ok(Utf8 { input, digest: None, unknown: Some(unknown) });
            }
        },
    };
    let mut bytes = Vec::new();
    input.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > bytes_max {
        return Err(Refused::Broken(format!("the XML is not UTF-8, and takes more than {bytes_max} bytes, the most that it then may")));
    }
    Ok(Utf8 { input: Box::new(Cursor::new(decode(&bytes).into_bytes())), digest: Some(Sha256::digest(&bytes).into()), unknown: None })
}

/// What `<?xml ... encoding="..."?>` says, in lower case.
fn declared(head: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(head);
    let declaration = text.trim_start_matches('\u{FEFF}').trim_start().strip_prefix("<?xml")?.split_once("?>")?.0;
    let value = declaration.split_once("encoding")?.1.trim_start().strip_prefix('=')?.trim_start();
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value.strip_prefix(quote)?.split_once(quote).map(|(name, _)| name.to_ascii_lowercase())
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> String {
    let units = bytes.chunks_exact(2).filter_map(|pair| pair.try_into().ok()).map(unit).skip(1);
    char::decode_utf16(units).map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)).collect()
}

fn windows(byte: u8) -> char {
    byte.checked_sub(0x80).and_then(|place| WINDOWS.get(usize::from(place))).copied().unwrap_or(char::from(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> (String, Option<String>) {
        let mut found = utf8(Box::new(Cursor::new(bytes.to_vec())), 1000).ok().unwrap();
        let mut text = String::new();
        found.input.read_to_string(&mut text).unwrap();
        (text, found.unknown)
    }

    #[test]
    fn declared_encodings_are_decoded() {
        assert_eq!(read(b"<?xml version='1.0' encoding='ISO-8859-1'?><a>\xE9\x80</a>").0.split_once("?>").unwrap().1, "<a>é\u{80}</a>");
        assert_eq!(read(b"<?xml encoding=\"Windows-1252\"?><a>\xE9\x80</a>").0.split_once("?>").unwrap().1, "<a>é€</a>");
        let little: Vec<u8> = [0xFEFF].into_iter().chain("<a>日𝄞</a>".encode_utf16()).flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = [0xFEFF].into_iter().chain("<a>日𝄞</a>".encode_utf16()).flat_map(u16::to_be_bytes).collect();
        assert_eq!((read(&little).0.as_str(), read(&big).0.as_str()), ("<a>日𝄞</a>", "<a>日𝄞</a>"));
        assert_eq!(read(b"<a encoding='x'/>"), ("<a encoding='x'/>".to_owned(), None));
        assert!(read(b"<?xml encoding='EBCDIC-CP-US'?><a/>").1.unwrap().contains("ebcdic-cp-us"));
    }

    #[test]
    fn a_big_file_of_another_encoding_is_refused() {
        let bytes = [b"<?xml encoding='latin1'?><a>".as_slice(), &[b'x'; 2000]].concat();
        assert!(matches!(utf8(Box::new(Cursor::new(bytes)), 1000), Err(Refused::Broken(why)) if why.contains("1000 bytes")));
    }
}
