//! Who asks.
//!
//! Promises: with a token configured, one `Authorization: Bearer <token>` that is the token, or 401: two, another scheme and another token
//! alike. A bad one is never taken for none. None is 401 too, but where anonymous discovery is on (`runlore serve`, decision 5): there it is
//! nobody's request and goes on, since only the decoded message says what is asked; `mcp::core` and the step `authorize` answer 401 to what
//! needs a caller. Reads that header only and takes it off: no later step, log or error can show it.
//! Does not: look at the query, ever; ask anything of the health route; judge a header where no token is configured. "When both are absent,
//! requests need no token" (S-history), so there is no credential that could be good or bad, and nobody is downgraded: everyone is `anonymous`
//! with the same rights (decision 48). A client that carries its token everywhere, or a proxy that adds its own, is not locked out by it.

use std::{
    convert::Infallible,
    sync::Arc,
    task::{Context, Poll},
};

use axum::body::Body;
use http::{HeaderMap, Request, Response, StatusCode, header};
use http_body::Body as HttpBody;
use tower::{Layer, Service};

use super::{
    project::Place,
    refusal::Barred,
    step::{Finish, Finished, Passage, refuse},
    visit::{Route, Visit},
};
use crate::auth::{
    Caller,
    authority::Authority,
    metadata::Challenges,
    tenants::{Known, Verifying},
};

/// Adds the step.
#[derive(Clone)]
pub struct AuthenticateLayer {
    authority: Authority,
    /// By endpoint.
    challenges: Arc<[Challenges]>,
}

impl AuthenticateLayer {
    /// The step, by this authority; `challenges` are those of each endpoint.
    #[must_use]
    pub const fn new(authority: Authority, challenges: Arc<[Challenges]>) -> Self {
        Self { authority, challenges }
    }
}

impl<S> Layer<S> for AuthenticateLayer {
    type Service = Authenticate<S>;

    fn layer(&self, inner: S) -> Authenticate<S> {
        Authenticate { inner, authority: self.authority.clone(), challenges: self.challenges.clone() }
    }
}

/// The step.
#[derive(Clone)]
pub struct Authenticate<S> {
    inner: S,
    authority: Authority,
    challenges: Arc<[Challenges]>,
}

/// Says on the way back where a credential, or a better one, is to be had. `mcp` refuses too, once it knows what was asked.
pub struct Challenging {
    challenges: Arc<[Challenges]>,
    endpoint: usize,
    sent: bool,
}

impl Finish for Challenging {
    fn finish(self, mut response: Response<Body>) -> Response<Body> {
        let Some(challenges) = self.challenges.get(self.endpoint) else { return response };
        let own = response.headers().get(header::WWW_AUTHENTICATE);
        let said = match response.status() {
            StatusCode::UNAUTHORIZED => Some(challenges.credential(self.sent)),
            StatusCode::FORBIDDEN => own.map(|own| challenges.scopes(own)),
            _ => None,
        };
        if let Some(said) = said {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, said);
        }
        response
    }
}

/// What is known of who asks once the head has been looked at.
enum Asker {
    /// Who it is; none on a route that asks no one.
    Known(Option<Caller>),
    /// It has to be verified.
    Verifying(Verifying),
}

impl<S> Authenticate<S> {
    fn challenging<B>(&self, request: &Request<B>) -> Challenging {
        let route = Visit::of(request).and_then(|visit| visit.route);
        let endpoint = if let Some(Route::Mcp(index)) = route { index } else { 0 };
        let sent = self.authority.asks() && request.headers().contains_key(header::AUTHORIZATION);
        Challenging { challenges: self.challenges.clone(), endpoint, sent }
    }

    /// Who asks; the header is taken off.
    fn asker<B>(&self, request: &mut Request<B>) -> Result<Asker, Barred> {
        let asker = match Visit::of(request).ok_or(Barred::Internal)?.route {
            Some(Route::Mcp(_)) => known(&self.authority, request.headers()),
            // Nobody sends anything: there is nothing to find out first.
            Some(Route::Runs | Route::Upload) => known(&self.authority, request.headers()).and_then(|asker| match asker {
                Asker::Known(Some(caller)) if caller.identified().is_none() => Err(Barred::Unauthenticated { sent: false }),
                asker => Ok(asker),
            }),
            // The list of tools is for callers too (S-tenant): there is no discovery without a credential.
            Some(Route::Tools | Route::Call) => known(&self.authority, request.headers()).and_then(|asker| match asker {
                Asker::Known(Some(caller)) if caller.is_nobody() => Err(Barred::Unauthenticated { sent: false }),
                asker => Ok(asker),
            }),
            Some(Route::Health | Route::Document(_)) => Ok(Asker::Known(None)),
            // A request that no step gave a route to is let nowhere.
            None => Err(Barred::Internal),
        };
        request.headers_mut().remove(header::AUTHORIZATION);
        asker
    }
}

fn known(authority: &Authority, headers: &HeaderMap) -> Result<Asker, Barred> {
    let mut lines = headers.get_all(header::AUTHORIZATION).iter();
    let Some(line) = lines.next().filter(|_| authority.asks()) else {
        return authority.stranger.clone().map(|caller| Asker::Known(Some(caller))).ok_or(Barred::Unauthenticated { sent: false });
    };
    let sent = bearer(line.as_bytes()).filter(|_| lines.next().is_none()).ok_or(Barred::Unauthenticated { sent: true })?;
    match authority.known(sent) {
        Known::Caller(caller) => Ok(Asker::Known(Some(caller))),
        Known::Nobody => Err(Barred::Unauthenticated { sent: true }),
        Known::Verifying(verifying) => Ok(Asker::Verifying(verifying)),
    }
}

/// Writes down who asks, if they may see what the path names. Nobody is not told what there is.
fn enter<B>(authority: &Authority, request: &mut Request<B>, caller: Option<Caller>) -> Result<(), Barred> {
    let visit = request.extensions_mut().get_mut::<Visit>().ok_or(Barred::Internal)?;
    let sees = |caller: &Caller, place: &Arc<Place>| caller.is_nobody() || authority.sees(caller, &place.organization, &place.project);
    if let (Some(caller), Some(place)) = (&caller, &visit.place)
        && !sees(caller, place)
    {
        return Err(Barred::NotFound);
    }
    visit.caller = caller;
    Ok(())
}

/// What stands after the scheme, whose case does not matter (RFC 9110, section 11.1).
fn bearer(line: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = line.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| rest.trim_ascii())
}

impl<S, B> Service<Request<B>> for Authenticate<S>
where
    S: Service<Request<B>, Response = Response<Body>, Error = Infallible> + Clone + Send + 'static,
    S::Future: Send,
    B: HttpBody + Send + 'static,
    B::Data: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Finished<Passage<S::Future>, Challenging>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let challenging = self.challenging(&request);
        let asker = self.asker(&mut request);
        let passage = match asker {
            Ok(Asker::Known(caller)) => match enter(&self.authority, &mut request, caller) {
                Ok(()) => Passage::on(self.inner.call(request)),
                Err(barred) => Passage::stopped(refuse(request, barred)),
            },
            Ok(Asker::Verifying(verifying)) => {
                let (mut inner, authority) = (self.inner.clone(), self.authority.clone());
                Passage::stopped(Box::pin(async move {
                    let caller = verifying.await.ok_or(Barred::Unauthenticated { sent: true });
                    match caller.and_then(|caller| enter(&authority, &mut request, Some(caller))) {
                        Ok(()) => inner.call(request).await,
                        Err(barred) => refuse(request, barred).await,
                    }
                }))
            }
            Err(barred) => Passage::stopped(refuse(request, barred)),
        };
        Finished::new(passage, challenging)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{
        authority::Credentials,
        directory::tests::{secret, two},
        tenants::Tenants,
        token::{Sources, StaticToken},
    };
    use crate::gate::project::Place;

    fn layer(token: Option<&str>) -> AuthenticateLayer {
        let token = StaticToken::load(Sources { flag: token, ..Sources::default() }).unwrap();
        let authority = match token {
            Some(token) => Authority { credentials: Credentials::Token(token), stranger: None },
            None => Authority::open(Caller::open()),
        };
        AuthenticateLayer::new(authority, [].into())
    }

    fn asked(token: Option<&str>, uri: &str, lines: &[&str]) -> Result<Option<String>, Barred> {
        Ok(asked_of(&layer(token), uri, lines)?.map(|caller| caller.principal().to_owned()))
    }

    /// What the step makes of a request: who it says it is from, or why it is barred.
    fn check(layer: &AuthenticateLayer, request: &mut Request<()>) -> Result<(), Barred> {
        let step = layer.layer(());
        match step.asker(request)? {
            Asker::Known(caller) => enter(&step.authority, request, caller),
            Asker::Verifying(_) => panic!("nothing here has to be verified"),
        }
    }

    fn asked_of(layer: &AuthenticateLayer, uri: &str, lines: &[&str]) -> Result<Option<Caller>, Barred> {
        let mut request = crate::gate::trial::request().uri(uri).body(()).unwrap();
        for line in lines {
            request.headers_mut().append(header::AUTHORIZATION, line.parse().unwrap());
        }
        check(layer, &mut request)?;
        assert!(!request.headers().contains_key(header::AUTHORIZATION), "no later step sees it");
        Ok(Visit::of(&request).unwrap().caller.clone())
    }

    #[test]
    fn who_sends_none_is_nobody_where_discovery_is_on_and_a_bad_one_is_never_none() {
        let mut open = layer(Some("s3cret"));
        open.authority.stranger = Some(Caller::nobody());
        let is = |lines: &[&str]| asked_of(&open, "/mcp", lines);
        assert_eq!(is(&[]), Ok(Some(Caller::nobody())));
        assert!(is(&["Bearer s3cret"]).unwrap().is_some_and(|caller| !caller.is_nobody()));
        for bad in [&[""][..], &["Bearer"], &["Bearer other"], &["Basic x"], &["Bearer s3cret", "Bearer s3cret"]] {
            assert_eq!(is(bad), Err(Barred::Unauthenticated { sent: true }), "{bad:?}");
        }
    }

    #[test]
    fn one_bearer_header_that_is_the_token_or_401() {
        let is = |lines: &[&str]| asked(Some("s3cret"), "/mcp", lines);
        for good in ["Bearer s3cret", "bearer s3cret", "BEARER  s3cret ", "Bearer s3cret"] {
            assert_eq!(is(&[good]), Ok(Some("token".to_owned())), "{good:?}");
        }
        assert_eq!(is(&[]), Err(Barred::Unauthenticated { sent: false }));
        let bad: &[&[&str]] = &[
            &[""],
            &["Bearer"],
            &["Bearer "],
            &["Bearer S3CRET"],
            &["Bearer s3cret x"],
            &["Bearer s3cret,Bearer s3cret"],
            &["Bearers3cret"],
            &["Basic s3cret"],
            &["s3cret"],
            &["Bearer \"s3cret\""],
            &["Bearer s3cret", "Bearer s3cret"],
            &["Bearer s3cret", "Bearer other"],
            &["Basic x", "Bearer s3cret"],
        ];
        for lines in bad {
            assert_eq!(is(lines), Err(Barred::Unauthenticated { sent: true }), "{lines:?}");
        }
    }

    #[test]
    fn a_path_of_another_organization_is_none() {
        let credentials = Credentials::Tenants(Tenants::new(two(), None).into());
        let layer = AuthenticateLayer::new(Authority { credentials, stranger: Some(Caller::nobody()) }, [].into());
        let asked = |letter: Option<&str>, organization: &str, project: &str| {
            let mut request = crate::gate::trial::request().body(()).unwrap();
            if let Some(letter) = letter {
                request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {}", secret(letter)).parse().unwrap());
            }
            let place = Place { organization: organization.into(), project: project.into() };
            request.extensions_mut().get_mut::<Visit>().unwrap().place = Some(place.into());
            check(&layer, &mut request)
        };
        assert_eq!(asked(Some("a"), "acme", "main"), Ok(()));
        for (organization, project) in [("zeta", "main"), ("acme", "none"), ("none", "main"), ("ACME", "main"), ("", "")] {
            assert_eq!(asked(Some("a"), organization, project), Err(Barred::NotFound), "{organization}/{project}");
            assert_eq!(asked(None, organization, project), Ok(()), "nobody is told nothing");
            assert_eq!(asked(Some("c"), organization, project), Err(Barred::Unauthenticated { sent: true }));
        }
    }

    #[test]
    fn a_token_in_the_query_is_none() {
        for uri in ["/mcp?token=s3cret", "/mcp?access_token=s3cret", "/mcp?authorization=Bearer%20s3cret"] {
            assert_eq!(asked(Some("s3cret"), uri, &[]), Err(Barred::Unauthenticated { sent: false }));
        }
        assert!(
            !String::from_utf8_lossy(&format!("{:?}", Barred::Unauthenticated { sent: true }.response("r")).into_bytes())
                .contains("s3cret")
        );
    }

    #[test]
    fn without_a_token_everyone_is_anonymous() {
        for lines in [&[][..], &["Basic eDp5"], &["Bearer x"]] {
            assert_eq!(asked(None, "/mcp", lines), Ok(Some("anonymous".to_owned())));
        }
    }

    #[test]
    fn health_asks_no_one_and_a_request_without_a_route_goes_nowhere() {
        let mut request = crate::gate::trial::request().body(()).unwrap();
        request.extensions_mut().get_mut::<Visit>().unwrap().route = Some(Route::Health);
        assert_eq!(check(&layer(Some("s3cret")), &mut request), Ok(()));
        assert!(Visit::of(&request).unwrap().caller.is_none());
        request.extensions_mut().get_mut::<Visit>().unwrap().route = None;
        assert_eq!(check(&layer(None), &mut request), Err(Barred::Internal));
    }

    #[test]
    fn the_answer_asks_for_a_bearer_token_and_no_more() {
        for sent in [true, false] {
            let response = Barred::Unauthenticated { sent }.response("r");
            assert_eq!((response.status().as_u16(), response.headers()["www-authenticate"].as_bytes()), (401, &b"Bearer"[..]));
        }
    }
}
