//! Who asks.
//!
//! Promises: with a token configured, one `Authorization: Bearer <token>` that is the token, or 401: two, another scheme and another token
//! alike. A bad one is never taken for none. None is 401 too, but where anonymous discovery is on (`runlore serve`, decision 5): there it is
//! nobody's request and goes on, since only the decoded message says what is asked; `mcp::core` and the step `authorize` answer 401 to what
//! needs a caller. Reads that header only and takes it off: no later step, log or error can show it.
//! Does not: look at the query, ever; ask anything of the health route; judge a header where no token is configured. "When both are absent,
//! requests need no token" (S-history), so there is no credential that could be good or bad, and nobody is downgraded: everyone is `anonymous`
//! with the same rights (decision 48). A client that carries its token everywhere, or a proxy that adds its own, is not locked out by it.

use http::{HeaderMap, Request, header};
use tower::Layer;

use super::{
    refusal::Barred,
    step::{Check, Checked},
    visit::{Route, Visit},
};
use crate::auth::{Caller, authority::Authority};

/// Adds the step.
#[derive(Debug, Clone)]
pub struct AuthenticateLayer {
    authority: Authority,
}

impl AuthenticateLayer {
    /// The step, by this authority.
    #[must_use]
    pub const fn new(authority: Authority) -> Self {
        Self { authority }
    }

    fn caller(&self, headers: &HeaderMap) -> Result<Caller, Barred> {
        let mut lines = headers.get_all(header::AUTHORIZATION).iter();
        let line = lines.next().filter(|_| self.authority.asks());
        let Some(line) = line else { return self.authority.stranger.clone().ok_or(Barred::Unauthenticated { sent: false }) };
        let one = lines.next().is_none();
        bearer(line.as_bytes()).filter(|_| one).and_then(|sent| self.authority.caller(sent)).ok_or(Barred::Unauthenticated { sent: true })
    }

    /// The caller, who may see what the path names. Nobody is not told what there is.
    fn placed<B>(&self, request: &Request<B>) -> Result<Caller, Barred> {
        let caller = self.caller(request.headers())?;
        let place = Visit::of(request).and_then(|visit| visit.place.as_ref()).filter(|_| !caller.is_nobody());
        match place {
            Some(place) if !self.authority.sees(&caller, &place.organization, &place.project) => Err(Barred::NotFound),
            _ => Ok(caller),
        }
    }
}

/// What stands after the scheme, whose case does not matter (RFC 9110, section 11.1).
fn bearer(line: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = line.split_at_checked(b"Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then(|| rest.trim_ascii())
}

impl Check for AuthenticateLayer {
    fn check<B>(&self, request: &mut Request<B>) -> Result<(), Barred> {
        let caller = match Visit::of(request).ok_or(Barred::Internal)?.route {
            Some(Route::Mcp(_)) => Some(self.placed(request)?),
            // Nobody sends anything: there is nothing to find out first.
            Some(Route::Runs | Route::Upload) => match self.placed(request)? {
                caller if caller.identified().is_none() => return Err(Barred::Unauthenticated { sent: false }),
                caller => Some(caller),
            },
            Some(Route::Health) => None,
            // A request that no step gave a route to is let nowhere.
            None => return Err(Barred::Internal),
        };
        request.headers_mut().remove(header::AUTHORIZATION);
        request.extensions_mut().get_mut::<Visit>().ok_or(Barred::Internal)?.caller = caller;
        Ok(())
    }
}

impl<S> Layer<S> for AuthenticateLayer {
    type Service = Checked<S, AuthenticateLayer>;

    fn layer(&self, inner: S) -> Self::Service {
        Checked::new(inner, self.clone())
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
        AuthenticateLayer::new(match token {
            Some(token) => Authority { credentials: Credentials::Token(token), stranger: None },
            None => Authority::open(Caller::open()),
        })
    }

    fn asked(token: Option<&str>, uri: &str, lines: &[&str]) -> Result<Option<String>, Barred> {
        Ok(asked_of(&layer(token), uri, lines)?.map(|caller| caller.principal().to_owned()))
    }

    fn asked_of(layer: &AuthenticateLayer, uri: &str, lines: &[&str]) -> Result<Option<Caller>, Barred> {
        let mut request = crate::gate::trial::request().uri(uri).body(()).unwrap();
        for line in lines {
            request.headers_mut().append(header::AUTHORIZATION, line.parse().unwrap());
        }
        layer.check(&mut request)?;
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
        let credentials = Credentials::Tenants(Tenants::new(two()).into());
        let layer = AuthenticateLayer::new(Authority { credentials, stranger: Some(Caller::nobody()) });
        let asked = |letter: Option<&str>, organization: &str, project: &str| {
            let mut request = crate::gate::trial::request().body(()).unwrap();
            if let Some(letter) = letter {
                request.headers_mut().insert(header::AUTHORIZATION, format!("Bearer {}", secret(letter)).parse().unwrap());
            }
            let place = Place { organization: organization.into(), project: project.into() };
            request.extensions_mut().get_mut::<Visit>().unwrap().place = Some(place.into());
            layer.check(&mut request)
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
        assert_eq!(layer(Some("s3cret")).check(&mut request), Ok(()));
        assert!(Visit::of(&request).unwrap().caller.is_none());
        request.extensions_mut().get_mut::<Visit>().unwrap().route = None;
        assert_eq!(layer(None).check(&mut request), Err(Barred::Internal));
    }

    #[test]
    fn the_answer_asks_for_a_bearer_token_and_no_more() {
        for sent in [true, false] {
            let response = Barred::Unauthenticated { sent }.response("r");
            assert_eq!((response.status().as_u16(), response.headers()["www-authenticate"].as_bytes()), (401, &b"Bearer"[..]));
        }
    }
}
