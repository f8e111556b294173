//! Where a request goes.
//!
//! Promises: the path is one of the list, byte for byte, or 404; its method is the route's, or 405 with `Allow` (decisions 21, 50). What
//! follows knows the route, and, on a server of many organizations, the two words below an endpoint that name an organization and a project.
//! Does not: decode, normalise or guess: `/mcp/`, `/%6dcp` and `/mcp/anything` are nothing.

use std::sync::Arc;

use http::{Method, Request};
use tower::Layer;

use super::{
    documents::Document,
    project::Place,
    refusal::Barred,
    step::{Check, Checked},
    visit::{Route, Visit},
};
use crate::domain::hex::is_sha256;

/// Where logs are sent to, on a server of many organizations.
pub(super) const RUNS: &str = "/v1/runs";
/// Where parts of them are sent to, by their digests.
pub(super) const UPLOADS: &str = "/v1/uploads/";
/// The tool API's list of tools, in `runlore serve` (S-tenant).
pub(super) const TOOLS: &str = "/api/mcp/tools";
/// Where they are called.
pub(super) const CALL: &str = "/api/mcp/call";

/// The paths that are served.
#[derive(Debug, Clone)]
pub struct Routes {
    endpoints: Arc<[Paths]>,
    documents: Arc<[String]>,
    /// Whether an organization and a project may stand below an endpoint.
    placed: bool,
    /// Whether the tool API is there.
    tools: bool,
}

#[derive(Debug)]
struct Paths {
    mcp: String,
    health: String,
}

impl Routes {
    /// The endpoints, such as `/mcp`; each has its `<endpoint>/health`. A [`Route::Mcp`] counts them from 0.
    #[must_use]
    pub fn new(endpoints: &[String], documents: &[Document], placed: bool) -> Self {
        let paths = |path: &String| Paths { mcp: path.clone(), health: format!("{}/health", path.trim_end_matches('/')) };
        let documents = documents.iter().map(|document| document.path.clone()).collect();
        Self { endpoints: endpoints.iter().map(paths).collect(), documents, placed, tools: false }
    }

    /// The same with the tool API's, or without.
    #[must_use]
    pub fn with_tools(self, tools: bool) -> Self {
        Self { tools, ..self }
    }

    /// The route of a path and a method.
    fn find(&self, path: &str, method: &Method) -> Result<Route, Barred> {
        if let Some(index) = self.endpoints.iter().position(|endpoint| endpoint.mcp == path) {
            return if method == Method::POST { Ok(Route::Mcp(index)) } else { Err(Barred::Method("POST")) };
        }
        if self.endpoints.iter().any(|endpoint| endpoint.health == path) {
            return read(Route::Health, method);
        }
        if let Some(index) = self.documents.iter().position(|document| document == path) {
            return read(Route::Document(index), method);
        }
        if self.tools && path == TOOLS {
            return read(Route::Tools, method);
        }
        if self.tools && path == CALL {
            return if method == Method::POST { Ok(Route::Call) } else { Err(Barred::Method("POST")) };
        }
        if self.placed { push(path, method) } else { Err(Barred::NotFound) }
    }

    /// The endpoint and the organization and project that a path below it names, if it can be such a path: whether they are there is found out
    /// once it is known who asks, so that a stranger's guesses are all the same (decision 92).
    fn place(&self, path: &str) -> Option<(usize, Place)> {
        let below = |(index, paths): (usize, &Paths)| {
            let (organization, project) = path.strip_prefix(&*paths.mcp)?.strip_prefix('/')?.split_once('/')?;
            (!project.contains('/')).then(|| (index, Place { organization: organization.into(), project: project.into() }))
        };
        self.endpoints.iter().enumerate().filter(|_| self.placed).find_map(below)
    }
}

/// The digest that a path of uploads names: SHA-256, in lower case.
#[must_use]
pub fn upload(path: &str) -> Option<&str> {
    path.strip_prefix(UPLOADS).filter(|digest| is_sha256(digest))
}

fn push(path: &str, method: &Method) -> Result<Route, Barred> {
    let (route, methods, allow): (_, &[Method], _) = if path == RUNS {
        (Route::Runs, &[Method::POST], "POST")
    } else if upload(path).is_some() {
        (Route::Upload, &[Method::PUT, Method::GET, Method::HEAD], "PUT, GET, HEAD")
    } else {
        return Err(Barred::NotFound);
    };
    if methods.contains(method) { Ok(route) } else { Err(Barred::Method(allow)) }
}

/// A route that is only read.
fn read(route: Route, method: &Method) -> Result<Route, Barred> {
    if method == Method::GET || method == Method::HEAD { Ok(route) } else { Err(Barred::Method("GET, HEAD")) }
}

impl Check for Routes {
    fn check<B>(&self, request: &mut Request<B>) -> Result<(), Barred> {
        let (path, method) = (request.uri().path(), request.method());
        let (route, place) = match (self.find(path, method), self.place(path)) {
            (Err(Barred::NotFound), Some((index, place))) if method == Method::POST => (Route::Mcp(index), Some(Arc::new(place))),
            (Err(Barred::NotFound), Some(_)) => return Err(Barred::Method("POST")),
            (found, _) => (found?, None),
        };
        let toolsets = toolsets(request);
        let visit = request.extensions_mut().get_mut::<Visit>().ok_or(Barred::Internal)?;
        (visit.route, visit.place, visit.toolsets) = (Some(route), place, toolsets);
        Ok(())
    }
}

/// The toolsets that a request narrows itself to (decision 51): in the query of its path, else in a header.
fn toolsets<B>(request: &Request<B>) -> Option<Arc<str>> {
    let query = request.uri().query().into_iter().flat_map(|query| query.split('&')).find_map(|pair| pair.strip_prefix("toolsets="));
    let header = || request.headers().get("x-runlore-toolsets").and_then(|value| value.to_str().ok());
    // A comma may come encoded; the words themselves need no encoding.
    query.or_else(header).map(|words| Arc::from(words.replace("%2C", ",").replace("%2c", ",")))
}

/// Adds the step.
#[derive(Debug, Clone)]
pub struct RouteLayer {
    routes: Routes,
}

impl RouteLayer {
    /// The step.
    #[must_use]
    pub const fn new(routes: Routes) -> Self {
        Self { routes }
    }
}

impl<S> Layer<S> for RouteLayer {
    type Service = Checked<S, Routes>;

    fn layer(&self, inner: S) -> Self::Service {
        Checked::new(inner, self.routes.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_of_the_list_or_nothing() {
        let routes = Routes::new(&["/mcp".to_owned(), "/api/mcp".to_owned()], &[], false);
        let find = |method: &str, path: &str| routes.find(path, &method.parse().unwrap());
        assert_eq!((find("POST", "/mcp"), find("POST", "/api/mcp")), (Ok(Route::Mcp(0)), Ok(Route::Mcp(1))));
        for method in ["GET", "HEAD", "OPTIONS", "DELETE", "PUT", "PATCH", "TRACE", "BREW", "post"] {
            assert_eq!(find(method, "/mcp"), Err(Barred::Method("POST")), "{method}");
        }
        for method in ["GET", "HEAD"] {
            assert_eq!((find(method, "/mcp/health"), find(method, "/api/mcp/health")), (Ok(Route::Health), Ok(Route::Health)));
        }
        assert_eq!(find("POST", "/mcp/health"), Err(Barred::Method("GET, HEAD")));
        for path in [
            "/",
            "",
            "*",
            "/mcp/",
            "/mcp/anything",
            "/mcp/health/",
            "/MCP",
            "//mcp",
            "/%6dcp",
            "/mcp%2f",
            "/mcp/../mcp",
            "/api",
            "/mcp;x",
            "/health",
        ] {
            assert_eq!(find("POST", path), Err(Barred::NotFound), "{path}");
        }
    }

    #[test]
    fn two_words_below_an_endpoint_name_a_project_where_there_are_many() {
        let asked = |placed: bool, method: &str, path: &str| {
            let mut request = crate::gate::trial::request().method(method).uri(path).body(()).unwrap();
            Routes::new(
                &["/mcp".to_owned(), "/api/mcp".to_owned()],
                &[Document { path: "/.well-known/x".into(), json: "{}".into() }],
                placed,
            )
            .check(&mut request)?;
            let visit = Visit::of(&request).unwrap();
            Ok((visit.route, visit.place.as_ref().map(|place| format!("{}+{}", place.organization, place.project))))
        };
        let is = |index, place: &str| Ok((Some(Route::Mcp(index)), Some(place.to_owned())));
        assert_eq!(asked(true, "POST", "/mcp/acme/main"), is(0, "acme+main"));
        assert_eq!(asked(true, "POST", "/api/mcp/acme/main?x=1"), is(1, "acme+main"));
        for odd in ["/mcp//", "/mcp/A%2f/..", "/mcp/health/x"] {
            assert!(matches!(asked(true, "POST", odd), Ok((Some(Route::Mcp(0)), Some(_)))), "{odd}");
        }
        assert_eq!(asked(true, "GET", "/mcp/acme/main"), Err(Barred::Method("POST")));
        assert_eq!(asked(true, "GET", "/mcp/health"), Ok((Some(Route::Health), None)));
        assert_eq!(asked(true, "GET", "/.well-known/x"), Ok((Some(Route::Document(0)), None)));
        assert_eq!(asked(true, "POST", "/.well-known/x"), Err(Barred::Method("GET, HEAD")));
        for none in ["/mcp/acme", "/mcp/acme/main/", "/mcp/acme/main/x", "/mcp/", "/other/acme/main", "/mcpx/acme/main"] {
            assert_eq!(asked(true, "POST", none), Err(Barred::NotFound), "{none}");
        }
        assert_eq!(asked(false, "POST", "/mcp/acme/main"), Err(Barred::NotFound));
    }

    #[test]
    fn logs_are_sent_where_there_are_many_projects() {
        let digest = "0123456789abcdef".repeat(4);
        let upload = format!("/v1/uploads/{digest}");
        let find = |placed, method: &str, path: &str| Routes::new(&["/mcp".to_owned()], &[], placed).find(path, &method.parse().unwrap());
        assert_eq!((find(true, "POST", "/v1/runs"), find(true, "PUT", &upload)), (Ok(Route::Runs), Ok(Route::Upload)));
        assert_eq!((find(true, "GET", &upload), find(true, "HEAD", &upload)), (Ok(Route::Upload), Ok(Route::Upload)));
        assert_eq!(find(true, "GET", "/v1/runs"), Err(Barred::Method("POST")));
        assert_eq!(find(true, "DELETE", &upload), Err(Barred::Method("PUT, GET, HEAD")));
        for path in [
            "/v1",
            "/v1/",
            "/v1/runs/",
            "/v1/uploads",
            "/v1/uploads/",
            "/v1/uploads/../x",
            &upload.replace('f', ""),
            &upload.to_uppercase(),
        ] {
            assert_eq!(find(true, "PUT", path), Err(Barred::NotFound), "{path}");
        }
        assert_eq!((find(false, "POST", "/v1/runs"), find(false, "PUT", &upload)), (Err(Barred::NotFound), Err(Barred::NotFound)));
    }

    #[test]
    fn the_tool_api_is_there_where_it_is_served_and_an_endpoint_of_its_name_comes_first() {
        let routes = |endpoints: &[&str], tools| {
            let endpoints: Vec<String> = endpoints.iter().map(|&path| path.to_owned()).collect();
            Routes::new(&endpoints, &[], true).with_tools(tools)
        };
        let find = |routes: &Routes, method: &str, path: &str| routes.find(path, &method.parse().unwrap());
        let served = routes(&["/mcp", "/api/mcp"], true);
        assert_eq!((find(&served, "GET", TOOLS), find(&served, "HEAD", TOOLS)), (Ok(Route::Tools), Ok(Route::Tools)));
        assert_eq!((find(&served, "POST", CALL), find(&served, "POST", "/api/mcp")), (Ok(Route::Call), Ok(Route::Mcp(1))));
        assert_eq!(find(&served, "POST", TOOLS), Err(Barred::Method("GET, HEAD")));
        for method in ["GET", "HEAD", "PUT", "DELETE"] {
            assert_eq!(find(&served, method, CALL), Err(Barred::Method("POST")), "{method}");
        }
        for path in ["/api/mcp/tools/", "/api/mcp/call/", "/api/mcp/tool", "/mcp/tools", "/mcp/call", "/api/mcp/%63all"] {
            assert_eq!(find(&served, "POST", path), Err(Barred::NotFound), "{path}");
        }
        let not = routes(&["/mcp", "/api/mcp"], false);
        assert_eq!((find(&not, "GET", TOOLS), find(&not, "POST", CALL)), (Err(Barred::NotFound), Err(Barred::NotFound)));
        assert_eq!(find(&routes(&["/api/mcp/call"], true), "POST", CALL), Ok(Route::Mcp(0)));
    }

    #[test]
    fn the_query_is_not_the_path() {
        let mut request = crate::gate::trial::request().uri("/mcp?toolsets=history&token=x").body(()).unwrap();
        assert_eq!(Routes::new(&["/mcp".to_owned()], &[], false).check(&mut request), Ok(()));
        assert_eq!(Visit::of(&request).unwrap().route, Some(Route::Mcp(0)));
    }
}
