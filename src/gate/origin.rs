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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::trial::{request, through};

    fn layer(origins: &[&str]) -> OriginLayer {
        let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        OriginLayer::new(OriginRules::new(None, 4986, &own(&["evals.example", "other.example:8443"]), &own(origins)))
    }

    async fn sent(origins: &[&str], method: &str, headers: &[(&str, &str)]) -> Response<Body> {
        let builder = headers.iter().fold(request().method(method), |request, (name, value)| request.header(*name, *value));
        through(&layer(origins), builder.body(Body::empty()).unwrap()).await
    }

    #[tokio::test]
    async fn only_our_pages_and_those_of_the_list_pass() {
        assert_eq!(sent(&[], "POST", &[]).await.status(), 200, "agents send none");
        let own = ["http://localhost:4986", "http://127.0.0.1:4986", "http://[::1]:4986", "https://evals.example", "http://evals.example"];
        for origin in own.into_iter().chain(["http://evals.example:4986", "https://other.example:8443", "http://other.example:8443"]) {
            let response = sent(&[], "POST", &[("origin", origin)]).await;
            assert_eq!(response.status(), 200, "{origin}");
            assert!(!response.headers().keys().any(|name| name.as_str().starts_with("access-control")), "no CORS headers without the flag");
        }
        let strangers = ["null", "", "https://evil.example", "https://localhost:4986", "http://localhost", "http://localhost:4987"];
        let lookalikes =
            ["https://evals.example.evil.example", "https://xevals.example", "https://u@evals.example", "https://evals.example/"];
        for origin in strangers.into_iter().chain(lookalikes).chain([
            "https://evals.example:4986",
            "evals.example",
            "file://",
            "https://evals.example.",
        ]) {
            assert_eq!(sent(&["https://app.example"], "POST", &[("origin", origin)]).await.status(), 403, "{origin}");
        }
        let twice = [("origin", "https://evals.example"), ("origin", "https://evals.example")];
        assert_eq!(sent(&[], "POST", &twice).await.status(), 403);
    }

    #[tokio::test]
    async fn a_page_of_the_list_may_ask_first_and_read_the_answer() {
        let list = ["https://app.example:443/", "http://dev.example:3000"];
        let ask = |origin| vec![("origin", origin), ("access-control-request-method", "POST")];
        let response = sent(&list, "OPTIONS", &ask("https://app.example")).await;
        let headers = response.headers();
        assert_eq!(
            (response.status(), headers["access-control-allow-origin"].as_bytes()),
            (StatusCode::NO_CONTENT, &b"https://app.example"[..])
        );
        assert_eq!(
            (&headers["access-control-allow-methods"], &headers["access-control-max-age"]),
            (&"POST".parse().unwrap(), &"600".parse().unwrap())
        );
        assert!(!headers.contains_key("access-control-allow-credentials"));
        let response = sent(&list, "POST", &[("origin", "http://dev.example:3000")]).await;
        assert_eq!(
            (&response.headers()["access-control-allow-origin"], &response.headers()["vary"]),
            (&"http://dev.example:3000".parse().unwrap(), &"origin".parse().unwrap())
        );
        assert_eq!(sent(&list, "OPTIONS", &ask("https://evil.example")).await.status(), 403);
        // Not a preflight, or of a page of ours: on to the route, which says 405.
        assert_eq!(sent(&list, "OPTIONS", &[("origin", "https://app.example")]).await.status(), 200);
        assert_eq!(sent(&list, "OPTIONS", &ask("https://evals.example")).await.status(), 200);
    }
}
