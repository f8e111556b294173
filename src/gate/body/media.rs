//! What a request says of its body and of the answer that it takes: Content-Type, Content-Encoding, Accept.
//!
//! Promises: one Content-Type, `application/json`, in UTF-8 where it names a character set; no encoding but `identity`. For Accept the most
//! specific range decides, and `q=0` is no (RFC 9110, section 12.5.1).
//! Does not: mind parameters that mean nothing for JSON.

use http::{HeaderMap, header};

/// The forms of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    /// One JSON object.
    Json,
    /// Server-sent events.
    EventStream,
}

/// Whether the body is JSON. A page of another site cannot say so without asking first (CORS), which is why nothing else will do.
pub(in crate::gate) fn is_json(headers: &HeaderMap) -> bool {
    let mut lines = headers.get_all(header::CONTENT_TYPE).iter();
    let Some(Ok(line)) = lines.next().map(|line| line.to_str()) else { return false };
    let mut parts = line.split(';').map(str::trim);
    let essence = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
    essence && lines.next().is_none() && parts.all(utf8_or_not_a_charset)
}

fn utf8_or_not_a_charset(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return parameter.is_empty() };
    let value = value.trim().trim_matches('"');
    !name.trim().eq_ignore_ascii_case("charset") || value.eq_ignore_ascii_case("utf-8") || value.eq_ignore_ascii_case("utf8")
}

/// Whether the body comes as it is.
pub(in crate::gate) fn is_plain(headers: &HeaderMap) -> bool {
    headers.get_all(header::CONTENT_ENCODING).iter().all(|line| line.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Whether the client takes an answer in that form.
pub(super) fn accepts(headers: &HeaderMap, framing: Framing) -> bool {
    let (kind, whole) = match framing {
        Framing::Json => ("application/*", "application/json"),
        Framing::EventStream => ("text/*", "text/event-stream"),
    };
    let mut said = false;
    let mut best = (0, false);
    for line in headers.get_all(header::ACCEPT) {
        said = true;
        for range in line.to_str().unwrap_or_default().split(',') {
            let mut parts = range.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let weight = rank(name, kind, whole);
            if weight > best.0 {
                best = (weight, !parts.any(is_never));
            }
        }
    }
    !said || best.1
}

/// How closely the range names the form; 0 is not at all.
fn rank(range: &str, kind: &str, whole: &str) -> u8 {
    if range.eq_ignore_ascii_case(whole) {
        3
    } else if range.eq_ignore_ascii_case(kind) {
        2
    } else {
        u8::from(range == "*/*")
    }
}

/// `q=0`, `q=0.000`.
fn is_never(parameter: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    name.trim().eq_ignore_ascii_case("q") && value.trim().parse::<f32>().is_ok_and(|weight| weight <= 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: header::HeaderName, lines: &[&str]) -> HeaderMap {
        lines.iter().map(|line| (name.clone(), line.parse().unwrap())).collect()
    }

    #[test]
    fn only_json_in_utf8_is_json() {
        let is = |lines: &[&str]| is_json(&headers(header::CONTENT_TYPE, lines));
        for good in [
            "application/json",
            "Application/JSON",
            "application/json; charset=utf-8",
            "application/json;charset=\"UTF-8\"",
            "application/json;",
        ] {
            assert!(is(&[good]), "{good}");
        }
        let bad = [
            "",
            "text/plain",
            "text/json",
            "application/json-rpc",
            "application/jsonx",
            "application/json, text/plain",
            "x application/json",
        ];
        for bad in bad.into_iter().chain([
            "application/json; charset=utf-16",
            "application/json;charset=utf-8;charset=utf-16",
            "application/json; x",
        ]) {
            assert!(!is(&[bad]), "{bad}");
        }
        assert!(!is(&[]) && !is(&["application/json", "application/json"]) && !is(&["application/json", "text/plain"]));
    }

    #[test]
    fn an_encoded_body_is_not_plain() {
        let is = |lines: &[&str]| is_plain(&headers(header::CONTENT_ENCODING, lines));
        assert!(is(&[]) && is(&["identity"]) && is(&["Identity"]));
        assert!(!is(&["gzip"]) && !is(&["identity", "br"]) && !is(&["identity, gzip"]) && !is(&[""]));
    }

    #[test]
    fn the_most_specific_range_decides() {
        let rows: [(&[&str], bool, bool); 11] = [
            (&[], true, true),
            (&["*/*"], true, true),
            (&["application/json, text/event-stream"], true, true),
            (&["application/json", "text/event-stream"], true, true),
            (&["application/json"], true, false),
            (&["text/event-stream"], false, true),
            (&["APPLICATION/*;q=0.1"], true, false),
            (&["*/*, application/json;q=0"], false, true),
            (&["application/json;q=0.000, */*;q=0.5"], false, true),
            (&["text/html, image/png"], false, false),
            (&[""], false, false),
        ];
        for (lines, json, stream) in rows {
            let headers = headers(header::ACCEPT, lines);
            assert_eq!((accepts(&headers, Framing::Json), accepts(&headers, Framing::EventStream)), (json, stream), "{lines:?}");
        }
    }
}
