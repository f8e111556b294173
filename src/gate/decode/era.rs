//! Whose rules hold for a message, and whether its headers say what its body says (decisions 4, 53, 85).
//!
//! Promises: a modern request says its version in header and `_meta`, its capabilities, its method and, where it has one, its name; all of
//! them agree with the body. An older one needs none of these headers, but one that is there must not lie: a proxy in front may route by it.
//! Does not: choose the version that `initialize` offers (it answers with the one here), or look at `Mcp-Param-*`: no tool declares any.

use std::fmt;

use base64::{Engine, prelude::BASE64_STANDARD};
use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value, json};

use super::{Fault, envelope::Envelope};
use crate::gate::message::{Era, MODERN, OLDEST_LEGACY, VERSIONS, negotiated};

const MISMATCH: i64 = -32020;
const UNSUPPORTED: i64 = -32022;
const INVALID_PARAMS: i64 = -32602;

/// The headers: as they are looked up, and as people write them.
const VERSION: Named = Named(HeaderName::from_static("mcp-protocol-version"), "MCP-Protocol-Version");
const METHOD: Named = Named(HeaderName::from_static("mcp-method"), "Mcp-Method");
const NAME: Named = Named(HeaderName::from_static("mcp-name"), "Mcp-Name");
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// A requested version is given back in the error, but no more of it than a version needs.
const ECHO_CHARS_MAX: usize = 64;

struct Named(HeaderName, &'static str);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.1)
    }
}

/// The era and version of a message.
///
/// # Errors
/// The fault to answer with.
pub fn settle(headers: &HeaderMap, envelope: &Envelope) -> Result<(Era, &'static str), Fault> {
    let header = single(headers, &VERSION)?;
    if envelope.response {
        return header.map_or(Ok(OLDEST_LEGACY), spoken).map(|version| (era(version), version));
    }
    // A request that says all that a modern one says is one, also where its method is the handshake that the era no longer has: it gets 404.
    let says_modern = header == Some(MODERN) && meta(&envelope.params).is_some_and(|meta| meta.contains_key(META_VERSION));
    if envelope.method == "initialize" && !says_modern {
        // The handshake exists in the legacy era only, whatever version it names.
        header.map(spoken).transpose()?;
        agree(headers, envelope, false)?;
        let asked = envelope.params.get("protocolVersion").and_then(Value::as_str);
        return Ok((Era::Legacy, negotiated(asked)));
    }
    let version = version(header, &envelope.params)?;
    let modern = era(version) == Era::Modern && envelope.is_request();
    if modern {
        complete(&envelope.params)?;
    }
    agree(headers, envelope, modern)?;
    Ok((era(version), version))
}

fn era(version: &str) -> Era {
    if version == MODERN { Era::Modern } else { Era::Legacy }
}

/// The version that header and `_meta` say.
fn version(header: Option<&str>, params: &Map<String, Value>) -> Result<&'static str, Fault> {
    let body = meta(params).and_then(|meta| meta.get(META_VERSION));
    match (header, body.and_then(Value::as_str)) {
        (Some(header), Some(body)) if header != body => {
            Err(mismatch(&VERSION, format!("the {VERSION} header and the protocolVersion in _meta differ")))
        }
        (Some(header), _) => spoken(header),
        (None, Some(_)) => Err(mismatch(&VERSION, format!("_meta has a protocolVersion, and the {VERSION} header is missing"))),
        (None, None) => Ok(OLDEST_LEGACY),
    }
}

fn spoken(version: &str) -> Result<&'static str, Fault> {
    VERSIONS.into_iter().find(|ours| *ours == version).ok_or_else(|| {
        let requested: String = version.chars().take(ECHO_CHARS_MAX).collect();
        let message = format!("this protocol version is not spoken here; use one of {}", VERSIONS.join(", "));
        Fault { code: UNSUPPORTED, message, data: Some(json!({"supported": VERSIONS, "requested": requested})) }
    })
}

fn meta(params: &Map<String, Value>) -> Option<&Map<String, Value>> {
    params.get("_meta").and_then(Value::as_object)
}

/// A modern request carries in `_meta` what others agreed on beforehand.
fn complete(params: &Map<String, Value>) -> Result<(), Fault> {
    let has = |key: &str, is: fn(&Value) -> bool| meta(params).and_then(|meta| meta.get(key)).is_some_and(is);
    let missing: Vec<&str> = [(META_VERSION, Value::is_string as fn(&Value) -> bool), (META_CAPABILITIES, Value::is_object)]
        .into_iter()
        .filter_map(|(key, is)| (!has(key, is)).then_some(key))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let message = format!("params._meta lacks {} (or it has another type)", missing.join(" and "));
    Err(Fault { code: INVALID_PARAMS, message, data: Some(json!({"missing": missing})) })
}

/// Whether `Mcp-Method` and `Mcp-Name` say what the body says; on a modern request they must be there.
fn agree(headers: &HeaderMap, envelope: &Envelope, required: bool) -> Result<(), Fault> {
    match single(headers, &METHOD)? {
        None if required => return Err(mismatch(&METHOD, format!("the {METHOD} header is missing"))),
        Some(method) if method != envelope.method => {
            return Err(mismatch(&METHOD, format!("the {METHOD} header is not the method of the body")));
        }
        _ => {}
    }
    let Some(key) = name_key(&envelope.method) else { return Ok(()) };
    let body = envelope.params.get(key).and_then(Value::as_str);
    match (single(headers, &NAME)?, body) {
        (None, Some(_)) if required => Err(mismatch(&NAME, format!("the {NAME} header is missing; it repeats params.{key}"))),
        // Without a name in the body there is nothing to repeat; the endpoint says that it is missing.
        (None, _) => Ok(()),
        (Some(sent), Some(name)) if is(sent, name) => Ok(()),
        (Some(_), _) => Err(mismatch(&NAME, format!("the {NAME} header is not params.{key} of the body"))),
    }
}

/// Where a method's name stands in its parameters.
fn name_key(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" | "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        _ => None,
    }
}

/// Whether the header's value is `name`, as it is or in the Base64 sentinel's form (SEP-2243).
fn is(sent: &str, name: &str) -> bool {
    match sent.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => BASE64_STANDARD.decode(encoded).is_ok_and(|decoded| decoded == name.as_bytes()),
        None => sent == name,
    }
}

/// The one value of a header; two would let a proxy and us read different ones.
fn single<'a>(headers: &'a HeaderMap, name: &Named) -> Result<Option<&'a str>, Fault> {
    let mut lines = headers.get_all(&name.0).iter();
    let Some(line) = lines.next() else { return Ok(None) };
    if lines.next().is_some() {
        return Err(mismatch(name, format!("the {name} header stands twice")));
    }
    line.to_str().map(Some).map_err(|_| mismatch(name, format!("the {name} header has characters that are not allowed in it")))
}

fn mismatch(header: &Named, message: String) -> Fault {
    Fault { code: MISMATCH, message, data: Some(json!({"header": header.1})) }
}
