//! Tables of the config that may stand several times: an identity provider, an executor.
//!
//! Promises: as in `keys`: a table's keys, defaults, bounds and reasons are one declaration.
//! Does not: read files.

use serde::Deserialize;

use super::shape::{Row, Shape};

tables! {
    /// An identity provider whose tokens (JWT) are taken.
    "auth.issuer", ISSUER: Issuer {
        /// Its name, exactly as its tokens' `iss` has it.
        issuer: String = (text ""),
            "another spelling is another issuer";
        /// What it may call this server: a token's `aud` must hold one of these.
        audiences: Vec<String> = (texts [], 32),
            "a token for another server must not work here";
        /// How it may sign: RS256, ES256, EdDSA.
        algorithms: Vec<String> = (texts ["RS256", "ES256", "EdDSA"], 3),
            "each key is for one of them; a list that names fewer takes fewer";
        /// The file of its public keys (JWKS); or jwks_url.
        jwks_file: String = (text ""),
            "for servers that reach no provider";
        /// Where its public keys (JWKS) are: https, or http on this machine; or jwks_file.
        jwks_url: String = (text ""),
            "keys rotate, and a URL follows";
        /// The claim that holds scopes, a text with spaces or a list; empty: scope, else scp.
        scope_claim: String = (text ""),
            "Keycloak and Auth0 write scope, Entra and Okta scp";
        /// The claim that names the organization; a path with dots goes into objects.
        organization_claim: String = (text "org"),
            "runlore token mint writes it";
        /// The claim that names the role, a text or a list, such as realm_access.roles; the highest known counts, else viewer.
        role_claim: String = (text "role"),
            "runlore token mint writes it";
        /// The organization of all its tokens, whatever they say.
        organization: String = (text ""),
            "a provider of one organization has no claim for it";
        /// The organizations that its tokens may be of; needed where there are several issuers; ["*"] is any.
        organizations: Vec<String> = (texts [], 1000),
            "one organization's provider must not speak for another's people";
        /// Whether clients are sent to it to log in (RFC 9728).
        authorization_server: bool = (true),
            "false for issuers of a CI's tokens, where nobody logs in";
    }
}

tables! {
    /// A program that `runlore worker` runs evaluations with: cases as JSON on its stdin, results as JSON lines on its stdout.
    "worker.executor", EXECUTOR: Executor {
        /// Its name, for logs and for the sentence of a run that failed.
        name: String = (text ""),
            "people ask which one it was";
        /// The evaluations that it runs: ids, in which * stands for any text. The first executor that fits a run does it.
        evaluations: Vec<String> = (texts [], 1000),
            "a caller names an evaluation and never a program";
        /// The environments that it runs them for: dev, staging, prod.
        environments: Vec<String> = (texts ["dev", "staging", "prod"], 3),
            "what may cost or reach production can have a program of its own";
        /// The program: an absolute path, or a name that is looked up in PATH when the worker starts.
        program: String = (text ""),
            "decided by the operator, once";
        /// Its arguments, as they are; nothing of a caller's stands among them.
        args: Vec<String> = (texts [], 256),
            "no shell, so nothing has to be quoted";
        /// Names of the worker's environment that it gets besides PATH, HOME, LANG, LC_ALL, TZ and TMPDIR.
        env: Vec<String> = (texts [], 256),
            "the worker's own secrets are not the program's";
        /// The directory that it starts in, absolute; empty: the one that the worker was started in.
        directory: String = (text ""),
            "programs look for their own files there";
        /// How long one run may take.
        timeout_s: u64 = (3600, 1, 604_800, "seconds"),
            "a program that hangs must give its place back";
        /// Bytes of one line of its output.
        line_bytes_max: usize = (4_194_304, 1024, 268_435_456, "bytes"),
            "a result with its whole transcript; one line is held in memory";
        /// Bytes of all its output.
        output_bytes_max: usize = (67_108_864, 1024, 1_073_741_824, "bytes"),
            "all results are held until the end shows that they count; transcripts are packed meanwhile";
        /// Results that one run may have.
        results_max: usize = (100_000, 1, 10_000_000, "results"),
            "each takes some hundred bytes of memory, however short its line is";
    }
}
