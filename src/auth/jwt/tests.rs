//! Tokens that must be refused, each for its reason, and tokens of real providers that must be read.

use std::sync::{Arc, Mutex};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    trial::{Place, Signer, document, issuer},
    *,
};
use crate::auth::jwks::{FromFile, FromUrl};

const NOW_S: u64 = 1_800_000_000;
const NAME: &str = "https://id.example/realms/team";

fn limits() -> Limits {
    let keys = jwks::Limits { again_s: 30, age_max_s: 86_400, keys_max: 64, deadline: Duration::from_secs(20) };
    Limits { bytes_max: 8192, leeway_s: 5, entries_max: 100, keep_s: 60, keys }
}

fn good() -> Value {
    json!({
        "iss": NAME, "sub": "u-1", "aud": ["https://other.example", "https://runs.example/mcp"], "exp": NOW_S + 3600, "nbf": NOW_S - 10,
        "iat": NOW_S - 10, "scope": "eval:read runs:read", "org": "acme", "role": ["member", "unheard-of"]
    })
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = good();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = good();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

struct Desk {
    verifier: JwtVerifier,
    place: Arc<Place>,
}

impl Desk {
    fn of(signers: &[&Signer]) -> Self {
        let place = Arc::new(Place::with(signers));
        Self { verifier: JwtVerifier::new(vec![issuer(NAME, place.clone())], limits()), place }
    }

    async fn says(&self, token: &str) -> Result<Arc<Verified>, JwtDenied> {
        self.verifier.verify(token, NOW_S).await
    }
}

#[tokio::test]
async fn a_good_token_of_each_algorithm_says_what_it_says() {
    for signer in [Signer::rsa("k"), Signer::p256("k"), Signer::ed25519("k")] {
        let said = Desk::of(&[&signer]).says(&signer.token(&good())).await.unwrap();
        let all = Verified {
            issuer: NAME.into(),
            subject: "u-1".to_owned(),
            organization: Some("acme".to_owned()),
            role: Role::Member,
            scopes: vec!["eval:read".to_owned(), "runs:read".to_owned()],
            expires_at_s: NOW_S + 3600,
        };
        assert_eq!(*said, all);
    }
}

#[tokio::test]
async fn each_wrong_claim_is_refused() {
    let signer = Signer::ed25519("k");
    let desk = Desk::of(&[&signer]);
    let rows = [
        (without("aud"), JwtDenied::Claim("aud")),
        (with("aud", json!(null)), JwtDenied::Claim("aud")),
        (with("aud", json!(["https://other.example"])), JwtDenied::Audience),
        (with("aud", json!([])), JwtDenied::Audience),
        (with("aud", json!("https://runs.example/mcp/")), JwtDenied::Audience),
        (with("aud", json!("HTTPS://runs.example/mcp")), JwtDenied::Audience),
        (without("iss"), JwtDenied::Claim("iss")),
        (with("iss", json!([NAME])), JwtDenied::Claim("iss")),
        (with("iss", json!(format!("{NAME}/"))), JwtDenied::Issuer),
        (without("sub"), JwtDenied::Claim("sub")),
        (without("exp"), JwtDenied::Claim("exp")),
        (with("exp", json!((NOW_S + 3600).to_string())), JwtDenied::Claim("exp")),
        (with("exp", json!((NOW_S + 3600) as f64)), JwtDenied::Claim("exp")),
        (with("exp", json!(NOW_S - 5)), JwtDenied::Expired),
        (with("exp", json!(0)), JwtDenied::Expired),
        (with("nbf", json!((NOW_S - 10).to_string())), JwtDenied::Claim("nbf")),
        (with("nbf", json!(NOW_S + 6)), JwtDenied::Early),
        (with("nbf", json!(u64::MAX)), JwtDenied::Early),
        (with("iat", json!("now")), JwtDenied::Claim("iat")),
    ];
    for (claims, denied) in rows {
        assert_eq!(desk.says(&signer.token(&claims)).await, Err(denied), "{claims}");
    }
    for claims in
        [with("exp", json!(NOW_S - 4)), with("nbf", json!(NOW_S + 5)), without("nbf"), with("aud", json!("https://runs.example/mcp"))]
    {
        assert!(desk.says(&signer.token(&claims)).await.is_ok(), "within the leeway: {claims}");
    }
    assert!(desk.says(&signer.token(&with("exp", json!(u64::MAX)))).await.is_ok());
    let twice = good().to_string().replacen('{', "{\"role\":\"owner\",", 1);
    assert_eq!(desk.says(&signer.signed(r#"{"alg":"EdDSA","kid":"k"}"#, &twice)).await, Err(JwtDenied::Malformed));
}

#[tokio::test]
async fn no_algorithm_but_the_keys_own() {
    let signer = Signer::ed25519("k");
    let desk = Desk::of(&[&signer]);
    for alg in ["none", "None", "nOnE", "NONE", "", "HS256", "HS384", "HS512", "PS256", "RS512", "ES384", "eddsa", "EdDSA ", "dir"] {
        let header = json!({"alg": alg, "kid": "k", "typ": "JWT"}).to_string();
        assert_eq!(desk.says(&signer.signed(&header, &good().to_string())).await, Err(JwtDenied::Algorithm), "{alg:?}");
        let message = format!("{}.{}", URL_SAFE_NO_PAD.encode(&header), URL_SAFE_NO_PAD.encode(good().to_string()));
        assert_eq!(desk.says(&format!("{message}.")).await, Err(JwtDenied::Malformed), "{alg:?} without a signature");
    }
    // One that is taken from this issuer, but is not this key's.
    for alg in ["RS256", "ES256"] {
        let token = signer.signed(&json!({"alg": alg, "kid": "k"}).to_string(), &good().to_string());
        assert_eq!(desk.says(&token).await, Err(JwtDenied::Key), "{alg}");
    }
    let mut only = issuer(NAME, desk.place.clone());
    only.algorithms = vec![Algorithm::Rs256, Algorithm::Es256];
    assert_eq!(JwtVerifier::new(vec![only], limits()).verify(&signer.token(&good()), NOW_S).await, Err(JwtDenied::Algorithm));
}

#[tokio::test]
async fn a_public_key_is_no_shared_secret() {
    for signer in [Signer::rsa("k"), Signer::p256("k"), Signer::ed25519("k")] {
        let desk = Desk::of(&[&signer]);
        let der = signer.public_der();
        let base64 = base64::engine::general_purpose::STANDARD.encode(&der);
        let pem = format!("-----BEGIN PUBLIC KEY-----\n{base64}\n-----END PUBLIC KEY-----\n");
        for secret in [pem.as_bytes(), pem.trim_end().as_bytes(), &der, signer.jwk().to_string().as_bytes()] {
            let key = jsonwebtoken::EncodingKey::from_secret(secret).unwrap();
            let mut header = jsonwebtoken::Header::new(jsonwebtoken::Algorithm::HS256);
            header.kid = Some("k".to_owned());
            let token = jsonwebtoken::encode(&header, &good(), &key).unwrap();
            assert_eq!(desk.says(&token).await, Err(JwtDenied::Algorithm));
            // The same signature under the key's own algorithm.
            let mac = token.rsplit_once('.').unwrap().1;
            let real = signer.token(&good());
            assert_eq!(desk.says(&format!("{}.{mac}", real.rsplit_once('.').unwrap().0)).await, Err(JwtDenied::Signature));
        }
    }
}

#[tokio::test]
async fn a_key_counts_for_its_own_issuer_only() {
    let (a, b) = (Signer::p256("same"), Signer::p256("same"));
    let places = [Arc::new(Place::with(&[&a])), Arc::new(Place::with(&[&b]))];
    let other = "https://other.example/";
    let verifier = JwtVerifier::new(vec![issuer(NAME, places[0].clone()), issuer(other, places[1].clone())], limits());
    let of = |name: &str| with("iss", json!(name));
    assert!(verifier.verify(&a.token(&of(NAME)), NOW_S).await.is_ok());
    assert!(verifier.verify(&b.token(&of(other)), NOW_S).await.is_ok());
    assert_eq!(verifier.verify(&a.token(&of(other)), NOW_S).await, Err(JwtDenied::Signature));
    assert_eq!(verifier.verify(&b.token(&of(NAME)), NOW_S).await, Err(JwtDenied::Signature));
    assert_eq!(verifier.verify(&Signer::p256("x").token(&of(NAME)), NOW_S).await, Err(JwtDenied::Key));
    assert_eq!(verifier.verify(&a.token(&of("https://evil.example/")), NOW_S).await, Err(JwtDenied::Issuer));
}

#[tokio::test]
async fn a_token_without_a_key_id_needs_exactly_one_key() {
    let (a, b) = (Signer::ed25519("a"), Signer::ed25519("b"));
    let token = a.signed(r#"{"alg":"EdDSA"}"#, &good().to_string());
    assert!(Desk::of(&[&a, &Signer::p256("p")]).says(&token).await.is_ok());
    assert_eq!(Desk::of(&[&a, &b]).says(&token).await, Err(JwtDenied::Key));
    assert_eq!(Desk::of(&[&b]).says(&token).await, Err(JwtDenied::Signature));
}

#[tokio::test]
async fn a_token_is_bounded() {
    let signer = Signer::ed25519("k");
    let desk = Desk::of(&[&signer]);
    let padded = |bytes: usize| signer.token(&with("pad", json!("x".repeat(bytes))));
    let most = (5500..6000).rev().map(padded).find(|token| token.len() <= 8192).unwrap();
    assert!(most.len() > 8188 && desk.says(&most).await.is_ok());
    assert_eq!(desk.says(&padded(8192)).await, Err(JwtDenied::TooLong));
    assert_eq!(desk.says(&"a".repeat(1_000_000)).await, Err(JwtDenied::TooLong));
    assert_eq!(desk.says(&format!("{}.{}.AA", "A".repeat(4000), "A".repeat(4000))).await, Err(JwtDenied::Malformed));
    let deep = format!("{}1{}", "[".repeat(2000), "]".repeat(2000));
    assert_eq!(desk.says(&signer.signed(r#"{"alg":"EdDSA","kid":"k"}"#, &deep)).await, Err(JwtDenied::Malformed));
}

#[tokio::test]
async fn an_unknown_key_is_looked_for_once_and_a_rotation_is_seen() {
    let (old, new) = (Signer::ed25519("old"), Signer::ed25519("new"));
    let desk = Desk::of(&[&old]);
    assert!(desk.says(&old.token(&good())).await.is_ok());
    assert_eq!(desk.place.asked(), 1, "the first token reads the keys where nobody did before");
    desk.place.set(&[&new]);
    let of = async |signer: &Signer, now_s: u64| desk.verifier.verify(&signer.token(&good()), now_s).await.map(|_| desk.place.asked());
    assert_eq!(of(&new, NOW_S + 29).await, Err(JwtDenied::Key), "once in 30 seconds");
    assert_eq!(of(&new, NOW_S + 30).await, Ok(2));
    assert_eq!(of(&old, NOW_S + 31).await, Err(JwtDenied::Key), "it was remembered, and its key is gone");
}

#[tokio::test]
async fn without_keys_nobody_can_tell_and_an_outage_is_survived() {
    let signer = Signer::ed25519("k");
    let desk = Desk::of(&[&signer]);
    desk.place.fail();
    assert_eq!(desk.says(&signer.token(&good())).await, Err(JwtDenied::NoKeys));
    assert_eq!(desk.says(&signer.token(&good())).await, Err(JwtDenied::NoKeys));
    assert_eq!(desk.place.asked(), 1);
    let sentence = format!("the key set of the issuer {NAME}: it cannot be read: it is down");
    assert_eq!(desk.verifier.prefetch(NOW_S + 60).await, Err(vec![sentence]));
    desk.place.set(&[&signer]);
    assert_eq!(desk.verifier.prefetch(NOW_S + 90).await, Ok(()));
    desk.place.fail();
    let late = |after: u64| (signer.token(&with("exp", json!(NOW_S * 2))), NOW_S + 90 + after);
    let (token, now_s) = late(86_400);
    assert!(desk.verifier.verify(&token, now_s).await.is_ok());
    let (token, now_s) = late(86_401);
    assert_eq!(desk.verifier.verify(&token, now_s).await, Err(JwtDenied::NoKeys), "also where it was remembered");
}

#[tokio::test]
async fn a_good_token_is_remembered_for_a_minute_and_never_beyond_its_end() {
    let signer = Signer::ed25519("k");
    let desk = Desk::of(&[&signer]);
    let verify = async |token: String, now_s| desk.verifier.verify(&token, now_s).await;
    let token = signer.token(&good());
    let first = verify(token.clone(), NOW_S).await.unwrap();
    let same = |said: Result<Arc<Verified>, JwtDenied>| Arc::ptr_eq(&first, &said.unwrap());
    assert!(same(verify(token.clone(), NOW_S + 59).await));
    assert!(!same(verify(token.clone(), NOW_S - 1).await), "a clock that was set back");
    assert!(!same(verify(token.clone(), NOW_S + 60).await));
    let short = signer.token(&with("exp", json!(NOW_S + 10)));
    assert!(verify(short.clone(), NOW_S).await.is_ok() && verify(short.clone(), NOW_S + 14).await.is_ok());
    assert_eq!(verify(short, NOW_S + 15).await, Err(JwtDenied::Expired));
    let off = JwtVerifier::new(vec![issuer(NAME, desk.place.clone())], Limits { entries_max: 0, ..limits() });
    assert!(off.verify(&token, NOW_S).await.is_ok());
}

#[tokio::test]
async fn an_issuers_organization_is_fixed_where_it_says_so() {
    let signer = Signer::ed25519("k");
    let mut fixed = issuer(NAME, Arc::new(Place::with(&[&signer])));
    fixed.organization = Some("ours".to_owned());
    let verifier = JwtVerifier::new(vec![fixed], limits());
    for claims in [good(), without("org"), with("org", json!(7))] {
        assert_eq!(verifier.verify(&signer.token(&claims), NOW_S).await.unwrap().organization.as_deref(), Some("ours"));
    }
}

/// The claims that Keycloak, Auth0 and Entra write, with what their documentation says to configure.
#[tokio::test]
async fn tokens_of_real_providers_are_read() {
    let names = |scope: Option<&str>, organization: &str, role: &str| ClaimNames {
        scope: scope.map(str::to_owned),
        organization: organization.to_owned(),
        role: role.to_owned(),
    };
    let rows = [
        (
            "keycloak_user",
            names(None, "organization", "realm_access.roles"),
            Some("acme"),
            Role::Admin,
            "email eval:read profile runs:read",
        ),
        ("keycloak_service", names(None, "org", "resource_access.runlore.roles"), None, Role::Member, "runs:write"),
        ("auth0_user", names(None, "org_id", "https://runs.example/role"), Some("org_9f3kQ2"), Role::Member, "eval:read openid profile"),
        ("auth0_rbac", names(Some("permissions"), "org_id", "https://runs.example/role"), None, Role::Viewer, "eval:read traces:read"),
        ("entra_user", names(None, "tid", "roles"), Some("7b1c0c52-4a7e-4d0c-9b59-1f1f4a7d6e11"), Role::Owner, "eval:read runs:read"),
        ("entra_app", names(None, "tid", "roles"), Some("7b1c0c52-4a7e-4d0c-9b59-1f1f4a7d6e11"), Role::Member, ""),
    ];
    let signer = Signer::rsa("k");
    for (file, claim_names, organization, role, scopes) in rows {
        let path = format!("{}/tests/fixtures/tokens/{file}.json", env!("CARGO_MANIFEST_DIR"));
        let claims: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        let mut provider = issuer(claims["iss"].as_str().unwrap(), Arc::new(Place::with(&[&signer])));
        provider.claims = claim_names;
        provider.audiences.push("api://runlore".to_owned());
        let said = JwtVerifier::new(vec![provider], limits()).verify(&signer.token(&claims), NOW_S).await;
        let said = said.unwrap_or_else(|denied| panic!("{file}: {denied}"));
        let found = (said.organization.as_deref(), said.role, said.scopes.join(" "));
        assert_eq!(found, (organization, role, scopes.to_owned()), "{file}");
    }
}

/// A key set as an identity provider serves it, over a real socket, through a rotation and an end.
#[tokio::test]
async fn keys_come_over_a_socket() {
    let (old, new) = (Signer::rsa("old"), Signer::p256("new"));
    let document_now = Arc::new(Mutex::new(document(&[old.jwk()])));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/certs", listener.local_addr().unwrap());
    let served = document_now.clone();
    let server = std::thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let body = served.lock().unwrap().clone();
            answer(&mut stream, &body);
        }
    });
    let place = FromUrl::new(&url, 262_144, Duration::from_secs(20), None).unwrap();
    let verifier = JwtVerifier::new(vec![issuer(NAME, Arc::new(place))], limits());
    verifier.prefetch(NOW_S).await.unwrap();
    assert!(verifier.verify(&old.token(&good()), NOW_S).await.is_ok());
    *document_now.lock().unwrap() = document(&[old.jwk(), new.jwk()]);
    assert!(verifier.verify(&new.token(&good()), NOW_S + 1).await.is_ok());
    server.join().unwrap();
    assert!(verifier.prefetch(NOW_S + 400).await.is_err(), "nobody answers any more");
    assert!(verifier.verify(&new.token(&good()), NOW_S + 400).await.is_ok());
}

fn answer(stream: &mut std::net::TcpStream, body: &[u8]) {
    use std::io::{Read, Write};
    let mut head = [0; 2048];
    let _ = stream.read(&mut head).unwrap();
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).unwrap();
    stream.write_all(body).unwrap();
}

#[tokio::test]
async fn keys_come_from_a_file_that_is_replaced() {
    let (old, new) = (Signer::ed25519("old"), Signer::ed25519("new"));
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), document(&[old.jwk()])).unwrap();
    let place = FromFile::new(file.path().to_owned(), 4096);
    let verifier = JwtVerifier::new(vec![issuer(NAME, Arc::new(place))], limits());
    assert!(verifier.verify(&old.token(&good()), NOW_S).await.is_ok());
    std::fs::write(file.path(), document(&[new.jwk()])).unwrap();
    verifier.prefetch(NOW_S + 300).await.unwrap();
    assert!(verifier.verify(&new.token(&good()), NOW_S + 300).await.is_ok());
    assert_eq!(verifier.verify(&old.token(&good()), NOW_S + 301).await, Err(JwtDenied::Key));
}

/// The task that looks after the keys reads them without anybody asking.
#[tokio::test(start_paused = true)]
async fn keys_are_kept_fresh_beside_the_requests() {
    let signer = Signer::ed25519("k");
    let desk = Desk::of(&[&signer]);
    let tasks = desk.verifier.keep_fresh(|| NOW_S);
    while desk.verifier.issuers[0].keys.current(NOW_S).is_none() {
        tokio::task::yield_now().await;
    }
    drop(tasks);
    assert!(desk.says(&signer.token(&good())).await.is_ok() && desk.place.asked() == 1);
}

/// A change of a good token: which byte, and what to do with it.
fn mutated(token: &str, at: usize, how: u8, with: u8) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.=+/ \0";
    let mut bytes = token.as_bytes().to_vec();
    let (at, letter) = (at % bytes.len(), LETTERS[usize::from(with) % LETTERS.len()]);
    match how % 5 {
        0 => bytes[at] = letter,
        1 => bytes.insert(at, letter),
        2 => drop(bytes.remove(at)),
        3 => bytes.truncate(at),
        _ => bytes.swap(at, (at + usize::from(with)) % token.len()),
    }
    String::from_utf8(bytes).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_change_of_a_good_token_is_one(changes in prop::collection::vec((any::<usize>(), any::<u8>(), any::<u8>()), 1..4), kind in 0_usize..2) {
        let signer = [Signer::ed25519, Signer::p256][kind]("k");
        let token = signer.token(&good());
        let changed = changes.iter().fold(token.clone(), |token, (at, how, with)| if token.is_empty() { token } else { mutated(&token, *at, *how, *with) });
        prop_assume!(changed != token);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        prop_assert!(runtime.block_on(Desk::of(&[&signer]).says(&changed)).is_err());
    }

    #[test]
    fn no_text_panics(text in ".{0,200}") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        prop_assert!(runtime.block_on(Desk::of(&[&Signer::ed25519("k")]).says(&text)).is_err());
    }
}
