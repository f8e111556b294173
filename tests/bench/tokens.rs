//! CPU time of a token: verified for the first time, by algorithm, and remembered.
//!
//! `cargo bench --bench tokens` prints a table. `-- warm --times=2000` (or RS256, ES256, EdDSA for a first verification) does only that, so
//! many times: two runs under `valgrind --tool=callgrind` differ by their instructions.
//!
//! Promises: what is measured is `JwtVerifier::verify` with its keys read, in CPU time of the one thread that does it; the claims are those
//! of a Keycloak user's token (some 1,400 bytes).
//! Does not: measure HTTP, or the fetching of keys.

use std::{error::Error, io::Write as _, process::ExitCode, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm as Theirs, EncodingKey, Header, jwk::Jwk};
use nix::time::{ClockId, clock_gettime};
use p256::pkcs8::EncodePrivateKey as _;
use rsa::{pkcs1::EncodeRsaPrivateKey as _, rand_core::UnwrapErr};
use runlore::auth::{
    jwks::{self, Fixed},
    jwt::{Algorithm, ClaimNames, Issuer, JwtVerifier, Limits},
};
use serde_json::{Value, json};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failed = Box<dyn Error>;

const NOW_S: u64 = 1_800_000_000;
const KINDS: [(&str, Theirs); 3] = [("RS256", Theirs::RS256), ("ES256", Theirs::ES256), ("EdDSA", Theirs::EdDSA)];
const CLAIMS: &str = include_str!("../fixtures/tokens/keycloak_user.json");
const REPEATS: usize = 5;

fn main() -> ExitCode {
    match measured() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr().lock(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn measured() -> Result<(), Failed> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let times = words.iter().find_map(|word| word.strip_prefix("--times=")).map_or(Ok(500), str::parse)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut out = std::io::stdout().lock();
    let wanted = |what: &str| words.iter().all(|word| word.starts_with("--") || word == what);
    for (name, theirs) in KINDS {
        // Remembered, all are alike; a search for an RSA key, of a length that chance decides, would spoil a count of instructions.
        let warm = wanted("warm") && (theirs == Theirs::EdDSA || wanted(name));
        if !wanted(name) && !warm {
            continue;
        }
        let (issuer, token) = made(theirs)?;
        for (state, entries_max, wanted) in [("first", 0, wanted(name)), ("remembered", 10_000, warm)] {
            if wanted {
                let verifier = JwtVerifier::new(vec![issuer.clone()], limits(entries_max));
                let mut us: Vec<f64> =
                    (0..REPEATS).map(|_| runtime.block_on(per_call(&verifier, &token, times))).collect::<Result<_, _>>()?;
                us.sort_by(f64::total_cmp);
                writeln!(out, "{name:6} {:5} bytes  {state:10} {:9.2} us", token.len(), us.get(REPEATS / 2).copied().unwrap_or_default())?;
            }
        }
    }
    Ok(())
}

async fn per_call(verifier: &JwtVerifier, token: &str, times: u32) -> Result<f64, Failed> {
    verifier.verify(token, NOW_S).await?;
    let before = cpu()?;
    for _ in 0..times {
        verifier.verify(token, NOW_S).await?;
    }
    Ok((cpu()? - before).as_secs_f64() * 1e6 / f64::from(times))
}

fn cpu() -> Result<Duration, Failed> {
    Ok(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?.into())
}

fn limits(entries_max: u64) -> Limits {
    let keys = jwks::Limits { again_s: 30, age_max_s: 86_400, keys_max: 64, deadline: Duration::from_secs(5) };
    Limits { bytes_max: 8192, leeway_s: 5, entries_max, keep_s: 60, keys }
}

/// An issuer with a new key, and its token.
fn made(algorithm: Theirs) -> Result<(Issuer, String), Failed> {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed)?;
    let (key, mut jwk) = match algorithm {
        Theirs::RS256 => {
            let key = rsa::PrivateKey::new(&mut UnwrapErr(getrandom::SysRng), 2048)?;
            let key = EncodingKey::from_rsa_der(key.to_pkcs1_der()?.as_bytes());
            let jwk = serde_json::to_value(Jwk::from_encoding_key(&key, algorithm)?)?;
            (key, jwk)
        }
        Theirs::ES256 => {
            let key = EncodingKey::from_ec_der(p256::SecretKey::from_slice(&seed)?.to_pkcs8_der()?.as_bytes());
            let jwk = serde_json::to_value(Jwk::from_encoding_key(&key, algorithm)?)?;
            (key, jwk)
        }
        _ => {
            let key = ed25519_dalek::SigningKey::from_bytes(&seed);
            let x = URL_SAFE_NO_PAD.encode(key.verifying_key().as_bytes());
            (EncodingKey::from_ed_der(key.to_pkcs8_der()?.as_bytes()), json!({"kty": "OKP", "crv": "Ed25519", "x": x}))
        }
    };
    let kid = "Yw3pN4q0cXr1mZ7tB9sD2fG5hJ8kL6vQaEoUiT0yRxM";
    jwk.as_object_mut().ok_or("a key is an object")?.insert("kid".to_owned(), kid.into());
    let claims: Value = serde_json::from_str(CLAIMS)?;
    let header = Header { kid: Some(kid.to_owned()), ..Header::new(algorithm) };
    let token = jsonwebtoken::encode(&header, &claims, &key)?;
    let issuer = Issuer {
        name: claims.get("iss").and_then(Value::as_str).unwrap_or_default().to_owned(),
        audiences: vec!["https://runs.example/mcp".to_owned()],
        algorithms: Algorithm::ALL.to_vec(),
        keys: Arc::new(Fixed(json!({ "keys": [jwk] }).to_string())),
        every_s: 300,
        claims: ClaimNames { role: "realm_access.roles".to_owned(), ..ClaimNames::default() },
        organization: None,
        organizations: Vec::new(),
    };
    Ok((issuer, token))
}
