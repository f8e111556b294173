//! Secrets that show by the name beside them: a JSON field, a keyword argument, the password of an address.
//!
//! Promises: a name is judged by its end, whatever its case and separators; the value is a string, of some length, and no placeholder. A span
//! ends where the value's own quote or an enclosing JSON string ends, and never in half an escape. Work is linear.
//! Does not: take a name alone (`token`, `key`) for a secret's, or a number for a secret.

use std::ops::Range;

use super::{
    REDACTED,
    text::{backslashes_before, byte, goes_on, run, run_back, run_with_escapes},
};

/// What names of secrets end in, without case and separators.
const SECRET_ENDS: [&[u8]; 9] =
    [b"apikey", b"secret", b"password", b"passwd", b"accesstoken", b"authtoken", b"refreshtoken", b"privatekey", b"authorization"];
/// A shorter value is an example or a word.
const VALUE_BYTES_MIN: usize = 6;
/// The part of a name that is looked at on either side of the literal in it.
const NAME_BYTES_MAX: usize = 64;
/// Backslashes before a quote in JSON inside JSON, to the third depth; the depth that each stands for.
const DEPTHS: [usize; 4] = [0, 1, 3, 7];

/// Whether what stands beside this name is a secret.
pub fn is_secret_name(name: &[u8]) -> bool {
    let bare: Vec<u8> = name.iter().filter(|byte| !is_separator(**byte)).map(u8::to_ascii_lowercase).collect();
    SECRET_ENDS.iter().any(|end| bare.ends_with(end))
}

/// Whether a value of such a name is one: long enough, and no placeholder.
pub fn is_secret_value(value: &[u8]) -> bool {
    const OPENINGS: [&[u8]; 5] = [b"${", b"$(", b"{", b"%(", b"%{"];
    let placeholder = OPENINGS.iter().any(|opening| value.starts_with(opening)) || (value.starts_with(b"<") && value.ends_with(b">"));
    let masked = value.iter().all(|byte| b"*.-_xX ".contains(byte));
    value.len() >= VALUE_BYTES_MIN && value != REDACTED.as_bytes() && !placeholder && !masked
}

const fn is_separator(byte: u8) -> bool {
    matches!(byte, b'_' | b'-' | b'.')
}

fn of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || is_separator(byte)
}

fn blank(byte: u8) -> bool {
    byte.is_ascii_whitespace()
}

/// The value beside the name around the literal from `hit` to `body`.
pub fn value(bytes: &[u8], hit: usize, body: usize) -> Option<Range<usize>> {
    let name_start = run_back(bytes, hit, NAME_BYTES_MAX, of_name);
    let window = bytes.get(..bytes.len().min(body + NAME_BYTES_MAX))?;
    let name_end = run(window, body, of_name);
    let name = bytes.get(name_start..name_end)?;
    if !is_secret_name(name) {
        return None;
    }
    let found = quoted_name(bytes, name_end).or_else(|| assigned(bytes, name_end))?;
    let start = after_scheme(bytes, &found);
    is_secret_value(bytes.get(start..found.end)?).then_some(start..found.end)
}

/// A quote with the backslashes before it, at `at`: the mark, its length and its depth.
fn quote_at(bytes: &[u8], at: usize) -> Option<(u8, usize)> {
    let slashes = run(bytes, at, |byte| byte == b'\\') - at;
    match byte(bytes, at + slashes)? {
        b'"' if DEPTHS.contains(&slashes) => Some((b'"', slashes)),
        b'\'' if slashes == 0 => Some((b'\'', 0)),
        _ => None,
    }
}

/// `name": "value"`: both in quotes of the same kind and depth.
fn quoted_name(bytes: &[u8], name_end: usize) -> Option<Range<usize>> {
    let (mark, slashes) = quote_at(bytes, name_end)?;
    let colon = run(bytes, name_end + slashes + 1, blank);
    let opening = run(bytes, colon + 1, blank);
    if byte(bytes, colon) != Some(b':') || quote_at(bytes, opening) != Some((mark, slashes)) {
        return None;
    }
    let start = opening + slashes + 1;
    Some(start..end_of_quoted(bytes, start, mark, slashes))
}

/// `name="value"`, `name = 'value'`, `name=value`.
fn assigned(bytes: &[u8], name_end: usize) -> Option<Range<usize>> {
    let equals = run(bytes, name_end, |byte| byte == b' ');
    if byte(bytes, equals) != Some(b'=') || goes_on(bytes, equals, b"==") {
        return None;
    }
    let at = run(bytes, equals + 1, |byte| byte == b' ');
    // Without a backslash it may be the end of a JSON string, which only what follows can tell.
    let opens = |(mark, slashes): &(u8, usize)| {
        let next = byte(bytes, at + slashes + 1);
        *mark == b'\'' || *slashes > 0 || next.is_some_and(|next| !blank(next) && !b",:}]".contains(&next))
    };
    if let Some((mark, slashes)) = quote_at(bytes, at).filter(opens) {
        let start = at + slashes + 1;
        // What `NAME=value` has taken from a quote that never closes is taken.
        let taken = goes_on(bytes, start, REDACTED.as_bytes());
        return (!taken).then(|| start..end_of_quoted(bytes, start, mark, slashes));
    }
    (at == name_end + 1).then(|| bare(bytes, at)).flatten()
}

/// A value without quotes. In a program another name stands here as a rule, or a call: only what has a digit and is no call is a secret.
fn bare(bytes: &[u8], start: usize) -> Option<Range<usize>> {
    let end = run_with_escapes(bytes, start, |byte| byte > b' ' && byte != 0x7f && !b"\"'`\\,;&<>(){}[]".contains(&byte));
    let digit = bytes.get(start..end)?.iter().any(u8::is_ascii_digit);
    let call = byte(bytes, end).is_some_and(|next| b"([{".contains(&next));
    (digit && !call).then_some(start..end)
}

/// Where a quoted value ends: at its own quote, at that of a JSON string around it, or with the line.
fn end_of_quoted(bytes: &[u8], start: usize, mark: u8, slashes: usize) -> usize {
    let mut at = start;
    loop {
        at = run(bytes, at, |byte| byte != b'"' && byte != mark && byte != b'\n');
        match byte(bytes, at) {
            Some(b'"') => {
                let before = backslashes_before(bytes, at).min(at - start);
                let depth = DEPTHS.iter().find(|depth| **depth <= slashes && before % (2 * (**depth + 1)) == **depth);
                if let Some(depth) = depth {
                    return at - depth;
                }
            }
            // Where JSON is around it, an apostrophe inside has two backslashes.
            Some(b'\'') if backslashes_before(bytes, at).min(at - start) == 0 => return at,
            Some(b'\'') => {}
            _ => return at,
        }
        at += 1;
    }
}

/// The beginning of a header's value without the scheme, which is no secret: `Bearer x`.
fn after_scheme(bytes: &[u8], value: &Range<usize>) -> usize {
    const SCHEME: &[u8] = b"bearer ";
    let found = bytes.get(value.clone()).and_then(|value| value.get(..SCHEME.len()));
    if found.is_some_and(|found| found.eq_ignore_ascii_case(SCHEME)) { value.start + SCHEME.len() } else { value.start }
}

/// The password in `://user:password@host`, from the byte after `://`.
pub fn password_of_address(bytes: &[u8], body: usize) -> Option<Range<usize>> {
    let end = run(bytes, body, |byte| byte > b' ' && byte != 0x7f && !b"/?#\"'`\\<>,;|".contains(&byte));
    let authority = bytes.get(body..end)?;
    let at = body + memchr::memrchr(b'@', authority)?;
    let start = body + memchr::memchr(b':', authority)? + 1;
    let password = bytes.get(start..at)?;
    let placeholder = password.is_empty() || password == REDACTED.as_bytes() || b"${%*".contains(password.first()?);
    (!placeholder).then_some(start..at)
}
