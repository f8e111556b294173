//! Which web page may send a request, and what its browser is told.
//!
//! Promises: an Origin that is not on the list is 403, whole and exact, one line only; none passes (agents send none). CORS headers go to
//! the origins of `--allowed-origin` and to no one else; without that flag there are none at all (decisions 20, 54).
//! Does not: take cookies or credentials of a browser into account; none are accepted anywhere behind this door.

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body::Body as HttpBody;
use tower::{Layer, Service};

use super::{
    host,
    refusal::Barred,
    step::{Finish, Finished, Passage, refuse},
};

const ALLOW_HEADERS: &str = "content-type, accept, authorization, mcp-protocol-version, mcp-method, mcp-name";
const EXPOSE_HEADERS: &str = "x-request-id, retry-after, www-authenticate";

/// The origins that may call.
#[derive(Debug, Clone)]
pub struct OriginRules {
    /// Pages of the server's own hosts.
    own: Arc<[Box<str>]>,
    /// Pages of `--allowed-origin`, which get CORS headers.
    shared: Arc<[Box<str>]>,
}

/// What an Origin header comes to.
enum Finding {
    /// None, or a page of ours.
    Pass,
    /// A page of the list, whose browser is to be told so.
    Shared(HeaderValue),
    /// Anything else.
    Foreign,
}

impl OriginRules {
    /// The rules of a server as in [`host::HostRules::new`], with the origins of `--allowed-origin`, each scheme, host and port.
    #[must_use]
    pub fn new(bind: Option<IpAddr>, port: u16, allowed_hosts: &[String], allowed_origins: &[String]) -> Self {
        let local = host::locals(bind).into_iter().flat_map(|name| host::with_port(&name, port)).map(|host| format!("http://{host}"));
        let named = allowed_hosts.iter().flat_map(|name| of_host(name, port));
        Self {
            own: local.chain(named).map(boxed).collect(),
            shared: allowed_origins.iter().map(|origin| boxed(canonical(origin))).collect(),
        }
    }

    fn find(&self, headers: &HeaderMap) -> Finding {
        let mut lines = headers.get_all(header::ORIGIN).iter();
        let Some(value) = lines.next() else { return Finding::Pass };
        let Ok(origin) = value.to_str() else { return Finding::Foreign };
        let on = |list: &[Box<str>]| list.iter().any(|ours| ours.eq_ignore_ascii_case(origin));
        if lines.next().is_some() {
            Finding::Foreign
        } else if on(&self.shared) {
            Finding::Shared(value.clone())
        } else if on(&self.own) {
            Finding::Pass
        } else {
            Finding::Foreign
        }
    }
}

fn boxed(text: String) -> Box<str> {
    text.to_ascii_lowercase().into_boxed_str()
}

/// The pages of an allowed host: by either scheme, the plain one also at the port that we listen on.
fn of_host(name: &str, port: u16) -> Vec<String> {
    let both = [format!("https://{name}"), format!("http://{name}")];
    let listening = (!host::has_port(name) && port != 80).then(|| format!("http://{name}:{port}"));
    both.into_iter().chain(listening).collect()
}

/// As a browser writes it: without the scheme's own port and without a slash at the end.
fn canonical(origin: &str) -> String {
    let origin = origin.trim_end_matches('/');
    let port = if origin.starts_with("https://") { ":443" } else { ":80" };
    origin.strip_suffix(port).unwrap_or(origin).to_owned()
}

/// Adds the step.
#[derive(Debug, Clone)]
pub struct OriginLayer {
    rules: OriginRules,
}

impl OriginLayer {
    /// The step.
    #[must_use]
    pub const fn new(rules: OriginRules) -> Self {
        Self { rules }
    }
}

impl<S> Layer<S> for OriginLayer {
    type Service = Origin<S>;

    fn layer(&self, inner: S) -> Origin<S> {
        Origin { inner, rules: self.rules.clone() }
    }
}

/// The step.
#[derive(Debug, Clone)]
pub struct Origin<S> {
    inner: S,
    rules: OriginRules,
}

impl<S, B> Service<Request<B>> for Origin<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible>,
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Finished<Passage<S::Future>, Share>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        match self.rules.find(request.headers()) {
            Finding::Foreign => Finished::new(Passage::stopped(refuse(request, Barred::Origin)), Share(None)),
            Finding::Pass => Finished::new(Passage::on(self.inner.call(request)), Share(None)),
            Finding::Shared(origin) if preflight(&request) => Finished::new(Passage::answered(permission()), Share(Some(origin))),
            Finding::Shared(origin) => Finished::new(Passage::on(self.inner.call(request)), Share(Some(origin))),
        }
    }
}

fn preflight<B>(request: &Request<B>) -> bool {
    request.method() == Method::OPTIONS && request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
}

fn permission() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(ALLOW_HEADERS));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// Tells the browser that its page may read the answer.
pub struct Share(Option<HeaderValue>);

impl Finish for Share {
    fn finish(self, mut response: Response<Body>) -> Response<Body> {
        if let Some(origin) = self.0 {
            let headers = response.headers_mut();
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(EXPOSE_HEADERS));
            headers.append(header::VARY, HeaderValue::from_static("origin"));
        }
        response
    }
}
