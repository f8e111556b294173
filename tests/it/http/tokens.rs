//! JWT on a server of organizations: who is let in, what is refused and how, where to log in (issue "tenants", HARDENING.md; decisions 12, 22, 44).

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::{
    town::{Issuing, Town},
    wire::{Answer, Request},
};

fn ask(town: &Town, token: &str, path: &str) -> Answer {
    town.ask(token, path, "whoami", &json!({}))
}

/// The answer's status and challenge.
fn refused(answer: &Answer) -> (u16, String) {
    (answer.status, answer.header("www-authenticate").unwrap_or_default().to_owned())
}

#[test]
fn a_token_is_who_it_says_and_sees_its_own_organization_alone() {
    let town = Town::issuing();
    let token = town.minted(&[
        "--organization",
        "acme",
        "--role",
        "member",
        "--subject",
        "ci-bot",
        "--scope",
        "eval:read",
        "--scope",
        "runs:write",
    ]);
    let said = ask(&town, &token, "/mcp").json()["result"]["structuredContent"].clone();
    assert_eq!(
        said,
        json!({"principal": "ci-bot", "organization": "acme", "role": "member", "scopes": ["eval:read", "runs:write"], "projects": ["main", "side"], "note": null})
    );
    assert_eq!(ask(&town, &token, "/mcp/acme/main").status, 200);
    assert_eq!(ask(&town, &token, "/mcp/zeta/main").status, 404);
    assert_eq!(
        ask(&town, &town.minted(&["--organization", "nowhere"]), "/mcp").json()["result"]["structuredContent"]["projects"],
        json!([])
    );
    let keys = town.service.ask(&Request::get(town.service.port, "/.well-known/jwks.json"));
    assert_eq!((keys.status, keys.json()["keys"][0]["kty"].clone(), keys.json()["keys"][0].get("d").cloned()), (200, json!("OKP"), None));
    assert!(!town.service.log().contains(&token), "no line has a token");
    assert!(town.service.log().contains("\"principal\":\"ci-bot\""));
}

#[test]
fn what_is_wrong_with_a_token_is_401_whatever_it_is() {
    let town = Town::issuing();
    let good = town.claims("acme");
    let signer = town.signer();
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    let without = |name: &str| {
        let mut claims = good.clone();
        claims.as_object_mut().unwrap().remove(name);
        claims
    };
    assert_eq!(ask(&town, &signer.signed(&good), "/mcp").status, 200, "the base of all these is good");
    let now = good["iat"].as_u64().unwrap();
    let wrong = [
        with("exp", json!(now - 60)),
        with("exp", json!(now.to_string())),
        with("exp", json!(now as f64 + 600.5)),
        without("exp"),
        with("nbf", json!(now + 600)),
        with("nbf", json!("0")),
        with("aud", json!("another")),
        with("aud", json!(null)),
        with("aud", json!(["another", "third"])),
        without("aud"),
        with("iss", json!("another")),
        with("iss", json!(["https://runlore.example"])),
        without("iss"),
        without("sub"),
    ];
    for claims in &wrong {
        assert_eq!(ask(&town, &signer.signed(claims), "/mcp").status, 401, "{claims}");
    }
    let claims = BASE64_URL_SAFE_NO_PAD.encode(good.to_string());
    for algorithm in ["none", "None", "nOnE", "HS256"] {
        let head = BASE64_URL_SAFE_NO_PAD.encode(json!({"alg": algorithm, "kid": signer.id}).to_string());
        for signature in ["", "AAAA"] {
            assert_eq!(ask(&town, &format!("{head}.{claims}.{signature}"), "/mcp").status, 401, "{algorithm}");
        }
    }
    let secret = EncodingKey::from_secret(signer.public.as_bytes()).unwrap();
    let hmac = jsonwebtoken::encode(&Header { kid: Some(signer.id.clone()), ..Header::new(Algorithm::HS256) }, &good, &secret).unwrap();
    let unknown = Issuing { id: "unknown".to_owned(), ..town.signer() }.signed(&good);
    let good = signer.signed(&good);
    let cut = good.rsplit_once('.').unwrap().0;
    for token in [&hmac, &unknown, cut, &format!("{good}."), &format!("{good}x"), &good.replace('.', ".."), "a.b.c", &"x".repeat(9000)] {
        let status = ask(&town, token, "/mcp").status;
        assert!(status == 401 || (token.len() > 8999 && status == 431), "{status}: {token}");
    }
}

#[test]
fn a_challenge_says_where_to_log_in_and_all_that_is_needed() {
    let town = Town::logging_in();
    let place = "resource_metadata=\"https://runs.example/.well-known/oauth-protected-resource/mcp\"";
    let none = town.service.ask(&Request::call(town.service.port, "history", &json!({})));
    assert_eq!(refused(&none), (401, format!("Bearer {place}")));
    assert_eq!(refused(&ask(&town, "nonsense", "/mcp")), (401, format!("Bearer {place}, error=\"invalid_token\"")));
    let poor = town.minted(&["--organization", "acme", "--scope", "runs:read"]);
    let asked = |tool: &str, path: &str| town.ask(&poor, path, tool, &json!({"project": "main", "attempt": "x"}));
    let scopes = |needed: &str| format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\", {place}");
    assert_eq!(refused(&asked("transcript", "/mcp")), (403, scopes("eval:read traces:read")));
    assert_eq!(asked("transcript", "/mcp").reason(), "insufficient_scope");
    let document = |path: &str| town.service.ask(&Request::get(town.service.port, path));
    let said = document("/.well-known/oauth-protected-resource/mcp");
    assert_eq!((said.status, said.json()["resource"].clone()), (200, json!("https://runs.example/mcp")));
    assert_eq!(said.json()["authorization_servers"], json!(["https://id.example"]));
    assert_eq!(document("/.well-known/oauth-protected-resource").json()["resource"], json!("https://runs.example"));
    assert_eq!(document("/.well-known/oauth-protected-resource/nothing").status, 404);
}

#[test]
fn without_issuers_a_challenge_is_exactly_bearer_and_there_is_no_document() {
    let town = Town::start("");
    assert_eq!(refused(&ask(&town, "nonsense", "/mcp")), (401, "Bearer".to_owned()));
    for path in ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp", "/.well-known/jwks.json"] {
        assert_eq!(town.service.ask(&Request::get(town.service.port, path)).status, 404, "{path}");
    }
}
