//! The trace that a caller's request belongs to: W3C `traceparent`, as the request's `_meta` carries it.
//!
//! Promises: exactly the form of version 00 (and what later versions must keep of it); anything else is no trace, and nobody is told off.
//! Does not: read HTTP headers: a proxy's trace is not the agent's.

use serde_json::{Map, Value};

/// Where a call stands in its caller's trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parent {
    /// The trace.
    pub trace_id: [u8; 16],
    /// The caller's own span.
    pub span_id: [u8; 8],
    /// Whether the caller records this trace.
    pub sampled: bool,
}

impl Parent {
    /// The trace that the parameters of a request name in `_meta.traceparent`.
    #[must_use]
    pub fn of(params: &Map<String, Value>) -> Option<Self> {
        Self::parse(params.get("_meta")?.get("traceparent")?.as_str()?)
    }

    /// Reads `00-<32 hex digits>-<16 hex digits>-<2 hex digits>`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('-');
        let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let [version]: [u8; 1] = bytes(version)?;
        // A later version may add parts; this one has none.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return None;
        }
        let (trace_id, span_id, [flags]): (_, _, [u8; 1]) = (bytes(trace)?, bytes(span)?, bytes(flags)?);
        let known = trace_id != [0; 16] && span_id != [0; 8];
        known.then_some(Self { trace_id, span_id, sampled: flags & 1 == 1 })
    }
}

/// Lower-case hexadecimal digits, exactly as many as `N` bytes take.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    let all: Option<Vec<u8>> = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect();
    all?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_traceparent_is_read() {
        let parent = Parent::parse(GOOD).unwrap();
        assert_eq!((parent.trace_id[0], parent.trace_id[15], parent.span_id[7], parent.sampled), (0x0a, 0x9c, 0x31, true));
        assert!(!Parent::parse(&GOOD.replace("-01", "-00")).unwrap().sampled);
        assert!(Parent::parse(&format!("{}-more", GOOD.replacen("00", "01", 1))).is_some(), "a later version may say more");
        let params = json!({"name": "x", "_meta": {"traceparent": GOOD}});
        assert_eq!(Parent::of(params.as_object().unwrap()), Some(parent));
    }

    #[test]
    fn all_else_is_no_trace() {
        let zero = |count| "0".repeat(count);
        for bad in [
            "",
            "00",
            &GOOD.to_uppercase(),
            &GOOD.replacen("00", "ff", 1),
            &format!("{GOOD}-more"),
            &GOOD.replace("0af7651916cd43dd8448eb211c80319c", &zero(32)),
            &GOOD.replace("b7ad6b7169203331", &zero(16)),
            &GOOD.replace("b7ad", "b7a"),
            &GOOD.replace("b7ad", "b7ädd"),
            &GOOD.replace('-', "_"),
        ] {
            assert_eq!(Parent::parse(bad), None, "{bad}");
        }
        for meta in [json!({}), json!({"_meta": 1}), json!({"_meta": {"traceparent": 7}}), json!({"_meta": {"Traceparent": GOOD}})] {
            assert_eq!(Parent::of(meta.as_object().unwrap()), None, "{meta}");
        }
    }
}
