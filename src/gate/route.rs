//! Where a request goes.
//!
//! Promises: the path is one of the list, byte for byte, or 404; its method is the route's, or 405 with `Allow` (decisions 21, 50). What
//! follows knows the route.
//! Does not: decode, normalise or guess: `/mcp/`, `/%6dcp` and `/mcp/anything` are nothing.

use std::sync::Arc;

use http::{Method, Request};
use tower::Layer;

use super::{
    refusal::Barred,
    step::{Check, Checked},
    visit::{Route, Visit},
};

/// The paths that are served.
#[derive(Debug, Clone)]
pub struct Routes {
    endpoints: Arc<[Paths]>,
}

#[derive(Debug)]
struct Paths {
    mcp: String,
    health: String,
}

impl Routes {
    /// The endpoints, such as `/mcp`; each has its `<endpoint>/health`. A [`Route::Mcp`] counts them from 0.
    #[must_use]
    pub fn new(endpoints: &[String]) -> Self {
        let paths = |path: &String| Paths { mcp: path.clone(), health: format!("{}/health", path.trim_end_matches('/')) };
        Self { endpoints: endpoints.iter().map(paths).collect() }
    }

    /// The route of a path and a method.
    fn find(&self, path: &str, method: &Method) -> Result<Route, Barred> {
        if let Some(index) = self.endpoints.iter().position(|endpoint| endpoint.mcp == path) {
            return if method == Method::POST { Ok(Route::Mcp(index)) } else { Err(Barred::Method("POST")) };
        }
        if !self.endpoints.iter().any(|endpoint| endpoint.health == path) {
            return Err(Barred::NotFound);
        }
        if method == Method::GET || method == Method::HEAD { Ok(Route::Health) } else { Err(Barred::Method("GET, HEAD")) }
    }
}

impl Check for Routes {
    fn check<B>(&self, request: &mut Request<B>) -> Result<(), Barred> {
        let route = self.find(request.uri().path(), request.method())?;
        let toolsets = toolsets(request);
        let visit = request.extensions_mut().get_mut::<Visit>().ok_or(Barred::Internal)?;
        (visit.route, visit.toolsets) = (Some(route), toolsets);
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
        let routes = Routes::new(&["/mcp".to_owned(), "/api/mcp".to_owned()]);
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
    fn the_query_is_not_the_path() {
        let mut request = crate::gate::trial::request().uri("/mcp?toolsets=history&token=x").body(()).unwrap();
        assert_eq!(Routes::new(&["/mcp".to_owned()]).check(&mut request), Ok(()));
        assert_eq!(Visit::of(&request).unwrap().route, Some(Route::Mcp(0)));
    }
}
