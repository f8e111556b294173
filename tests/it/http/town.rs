//! A server of two organizations with the same names in it: `acme` and `zeta`, each with the projects `main` and `side`.
//!
//! Promises: both `main` hold runs with the same ids; what only `zeta` has carries the word of [`CANARY`]; keys are made by the binary.
//! Does not: share a server between tests.

use std::path::{Path, PathBuf};

use base64::{Engine as _, prelude::BASE64_URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};

use super::{
    service::Service,
    wire::{Answer, Request},
};
use crate::harness::{Project, command, fixtures, ran};

/// Stands in all that only `zeta` has.
pub const CANARY: &str = "canary7zq";

/// The server and its keys.
pub struct Town {
    pub service: Service,
    data: PathBuf,
}

/// What the server's own key is called, and what it calls the server.
const ISSUER: &str = "https://runlore.example";
const AUDIENCE: &str = "runs";

/// The server's own key, in the hands of a test.
pub struct Issuing {
    /// Its id.
    pub id: String,
    /// Its public half, as the key set has it.
    pub public: String,
    pub key: EncodingKey,
}

impl Issuing {
    /// A token of these claims.
    pub fn signed(&self, claims: &Value) -> String {
        let header = Header { kid: Some(self.id.clone()), ..Header::new(Algorithm::EdDSA) };
        jsonwebtoken::encode(&header, claims, &self.key).unwrap()
    }
}

/// What `runlore` says to these words; it must end with 0.
pub fn said(words: &[&str]) -> String {
    let ran = ran(command().args(words).output().unwrap());
    assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
    ran.out.trim().to_owned()
}

impl Town {
    /// The server, with `more` keys of `[tenants]`.
    pub fn start(more: &str) -> Self {
        Self::with(more, "")
    }

    /// The same, with keys of `[http]` too.
    pub fn with(more: &str, http: &str) -> Self {
        Self::made(more, http, "")
    }

    /// The same, where `http` has the rate of callers too.
    pub fn made_with(http: &str) -> Self {
        Self::made("", http, "")
    }

    /// The same, with a key of its own that signs tokens.
    pub fn issuing() -> Self {
        Self::made("", "", &format!("[auth]\nlocal_key_file = \"KEY\"\nlocal_issuer = \"{ISSUER}\"\nlocal_audience = \"{AUDIENCE}\"\n"))
    }

    /// The same, where people log in elsewhere.
    pub fn logging_in() -> Self {
        let issuer = "[[auth.issuer]]\nissuer = \"https://id.example\"\naudiences = [\"runs\"]\njwks_file = \"/nowhere/keys.json\"\n";
        let own = format!("local_key_file = \"KEY\"\nlocal_issuer = \"{ISSUER}\"\nlocal_audience = \"{AUDIENCE}\"\n");
        Self::made("", "", &format!("[auth]\npublic_url = \"https://runs.example\"\n{own}{issuer}"))
    }

    /// The same, where `zeta/main` holds what `project` does.
    pub fn holding(more: &str, http: &str, project: &Project) -> Self {
        Self::made_of(more, http, "", project)
    }

    /// The same, where the tool API writes.
    pub fn made_with_writes() -> Self {
        Self::declaring("[tool_api]\nwrites = true\n")
    }

    /// The same, with these sections of the configuration besides.
    pub fn declaring(sections: &str) -> Self {
        Self::made("", "", sections)
    }

    /// The configuration's file.
    pub fn config(&self) -> PathBuf {
        PathBuf::from(format!("{}.toml", self.data.display()))
    }

    fn made(more: &str, http: &str, auth: &str) -> Self {
        Self::made_of(more, http, auth, &canaries())
    }

    fn made_of(more: &str, http: &str, auth: &str, project: &Project) -> Self {
        let home = Project::new();
        let data = home.path().join("data");
        let town = |words: &[&str]| said(&[words, &["--data-dir", data.to_str().unwrap()]].concat());
        for organization in ["acme", "zeta"] {
            town(&["org", "create", organization]);
            for project in ["main", "side"] {
                town(&["project", "create", &format!("{organization}/{project}")]);
            }
        }
        filled(&file(&data, "acme", "main"), &Project::demo());
        filled(&file(&data, "zeta", "main"), project);
        let shown = data.to_str().unwrap().to_owned();
        let key = home.path().join("key.pem");
        said(&["token", "keygen", "--out", key.to_str().unwrap()]);
        let auth = auth.replace("KEY", key.to_str().unwrap());
        let service = Service::spawned(home, |command, port, admin| {
            let file = PathBuf::from(format!("{shown}.toml"));
            let rate = if http.contains("rate_per_min") { "" } else { "rate_per_min = 0\n" };
            let config = format!(
                "[tenants]\ndata_dir = \"{shown}\"\nlook_ms = 20\n{more}\n[http]\nport = {port}\n{rate}{http}\n[admin]\nlisten = \"127.0.0.1:{admin}\"\n{auth}\n"
            );
            std::fs::write(&file, config).unwrap();
            command.args(["serve", "--config"]).arg(&file);
        });
        Self { service, data }
    }

    /// The output of a verb over its organizations.
    pub fn said(&self, words: &[&str]) -> String {
        said(&[words, &["--data-dir", self.data.to_str().unwrap()]].concat())
    }

    /// A new key; the server knows it when this returns.
    pub fn key(&self, organization: &str, role: &str, scopes: &[&str]) -> String {
        let scopes: Vec<&str> = scopes.iter().flat_map(|scope| ["--scope", scope]).collect();
        let key = self.said(&[&["key", "create", organization, "--name", "test", "--role", role][..], &scopes].concat());
        super::service::wait_for("the key to be known", || (self.whoami(&key).status == 200).then_some(()));
        key
    }

    /// The control file.
    pub fn control(&self) -> PathBuf {
        self.data.join("control.db")
    }

    /// A project's file.
    pub fn file(&self, organization: &str, project: &str) -> PathBuf {
        file(&self.data, organization, project)
    }

    fn key_file(&self) -> String {
        self.data.with_file_name("key.pem").to_str().unwrap().to_owned()
    }

    /// A token that the binary mints, with these words besides.
    pub fn minted(&self, words: &[&str]) -> String {
        let file = self.key_file();
        said(&[&["token", "mint", "--key-file", &file, "--issuer", ISSUER, "--audience", AUDIENCE][..], words].concat())
    }

    /// The claims of a token that is good for a viewer of `organization`.
    pub fn claims(&self, organization: &str) -> Value {
        let minted = self.minted(&["--organization", organization, "--scope", "eval:read"]);
        let claims = BASE64_URL_SAFE_NO_PAD.decode(minted.split('.').nth(1).unwrap()).unwrap();
        serde_json::from_slice(&claims).unwrap()
    }

    /// The server's own key.
    pub fn signer(&self) -> Issuing {
        let pem = std::fs::read_to_string(self.key_file()).unwrap();
        let base64: String = pem.lines().filter(|line| !line.starts_with("---")).collect();
        let der = base64::prelude::BASE64_STANDARD.decode(base64).unwrap();
        let set = self.service.ask(&Request::get(self.service.port, "/.well-known/jwks.json")).json();
        let text = |name: &str| set["keys"][0][name].as_str().unwrap().to_owned();
        Issuing { id: text("kid"), public: text("x"), key: EncodingKey::from_ed_der(&der) }
    }

    pub fn whoami(&self, key: &str) -> Answer {
        self.service.ask(&Request::call(self.service.port, "whoami", &json!({})).bearer(key))
    }

    /// The id of the newest key.
    pub fn newest_key(&self) -> String {
        let keys: Value = serde_json::from_str(&self.said(&["key", "list", "--json"])).unwrap();
        keys.as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned()
    }

    /// A call at a path.
    pub fn ask(&self, key: &str, path: &str, tool: &str, arguments: &Value) -> Answer {
        self.service.ask(&Request::call(self.service.port, tool, arguments).bearer(key).to(path))
    }
}

fn file(data: &Path, organization: &str, project: &str) -> PathBuf {
    let listed: Value = serde_json::from_str(&said(&["project", "list", "--json", "--data-dir", data.to_str().unwrap()])).unwrap();
    let is = |row: &&Value| row["organization"] == organization && row["slug"] == project;
    let id = listed.as_array().unwrap().iter().find(is).unwrap()["id"].as_str().unwrap().to_owned();
    data.join("projects").join(format!("{id}.db"))
}

/// The demo's runs and one more, whose names are nobody else's.
fn canaries() -> Project {
    let project = Project::demo();
    let text = std::fs::read_to_string(fixtures().join("record/run.json")).unwrap();
    let mut record: Value = serde_json::from_str(&text).unwrap();
    record["runId"] = CANARY.into();
    project.write(&format!(".history/{CANARY}/run.json"), record.to_string());
    project
}

/// The project's store as it is once all is read.
fn filled(to: &Path, project: &Project) {
    let listed = project.json(&["runs-list"]);
    assert!(listed["total"].as_u64().unwrap() > 0, "{listed}");
    std::fs::create_dir_all(to.parent().unwrap()).unwrap();
    std::fs::copy(project.path().join(".runlore/history.db"), to).unwrap();
}
