//! A request whose end could be read in two ways is not read at all.
//!
//! Promises: more than one `Transfer-Encoding`, or any but `chunked`, or a second `Content-Length`, is 400 and the connection ends.
//! Does not: see Content-Length beside Transfer-Encoding: hyper has dropped the first by then, reads the chunks and closes afterwards.

use http::{HeaderMap, Request, header};
use tower::Layer;

use super::{
    refusal::Barred,
    step::{Check, Checked},
};

/// Adds the step.
#[derive(Debug, Clone, Copy, Default)]
pub struct FramingLayer;

impl<S> Layer<S> for FramingLayer {
    type Service = Checked<S, FramingLayer>;

    fn layer(&self, inner: S) -> Self::Service {
        Checked::new(inner, Self)
    }
}

impl Check for FramingLayer {
    fn check<B>(&self, request: &mut Request<B>) -> Result<(), Barred> {
        if plain(request.headers()) {
            return Ok(());
        }
        Err(Barred::Framing)
    }
}

fn plain(headers: &HeaderMap) -> bool {
    let mut encodings = headers.get_all(header::TRANSFER_ENCODING).iter();
    let encoding = encodings.next().is_none_or(|value| value.as_bytes().eq_ignore_ascii_case(b"chunked"));
    encoding && encodings.next().is_none() && headers.get_all(header::CONTENT_LENGTH).iter().count() <= 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_one_end() {
        let rows: [(&[(&str, &str)], bool); 9] = [
            (&[], true),
            (&[("content-length", "3")], true),
            (&[("transfer-encoding", "chunked")], true),
            (&[("transfer-encoding", "Chunked")], true),
            (&[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")], false),
            (&[("transfer-encoding", "chunked, chunked")], false),
            (&[("transfer-encoding", "gzip, chunked")], false),
            (&[("transfer-encoding", "identity")], false),
            (&[("content-length", "3"), ("content-length", "3")], false),
        ];
        for (headers, passes) in rows {
            let mut request =
                headers.iter().fold(Request::builder(), |request, (name, value)| request.header(*name, *value)).body(()).unwrap();
            assert_eq!(FramingLayer.check(&mut request).is_ok(), passes, "{headers:?}");
        }
    }
}
