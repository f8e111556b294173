//! `runlore check-config FILE`: every fault of a configuration at once, each with its line, before a server is started with it.
//!
//! Promises: what `runlore serve --config FILE` would refuse is told here, and all of it: keys, how they fit together, the files that they
//! name. Exit code 0 where nothing is wrong, 1 with the faults, 2 where there is no file to read.
//! Does not: listen, open a store, or ask another server; a port that is taken or an issuer that is away is found when it serves.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};

use super::{CliError, output::Output};
use crate::{
    config::{Config, lines::Fault},
    serve::{flags::HttpFlags, hooks::Outside, settings::Settings},
};

/// What the service calls by the name of its flag, by the name of its key.
const KEYS: [(&str, &str); 8] = [
    ("--public", "http.public"),
    ("--host", "http.host"),
    ("--path", "http.endpoints"),
    ("--allowed-host", "http.allowed_hosts"),
    ("--allowed-origin", "http.allowed_origins"),
    ("--client-header", "http.client_header"),
    ("--trusted-proxy", "http.trusted_proxies"),
    ("--token", "tenants.data_dir"),
];

/// The verb.
#[must_use]
pub fn command() -> Command {
    let file = Arg::new("file").value_name("FILE").required(true).value_parser(value_parser!(PathBuf)).help("The configuration");
    Command::new("check-config").about("Tells every fault of a configuration, each with its line").arg(file)
}

/// Checks.
///
/// # Errors
/// [`CliError::Usage`] where the file cannot be read.
pub fn run(matches: &ArgMatches, output: &mut Output) -> Result<u8, CliError> {
    let Some(path) = matches.get_one::<PathBuf>("file") else { return Err(CliError::Usage("no FILE".to_owned())) };
    let text = Config::text(path).map_err(|error| CliError::Usage(error.to_string()))?;
    let faults = faults(&text);
    if faults.is_empty() {
        output.say(&format!("{}: nothing is wrong", path.display()));
        return Ok(0);
    }
    let told: Vec<String> = faults.iter().map(|fault| format!("{}:{}: {}", path.display(), fault.line, fault.text)).collect();
    output.say(&told.join("\n"));
    Ok(1)
}

/// What is wrong with `text`, by line.
fn faults(text: &str) -> Vec<Fault> {
    let (mut faults, config, lines) = Config::faults(text);
    let service = Settings::for_serve(&HttpFlags::default(), &config).err().unwrap_or_default();
    let told = service.lines().map(by_key);
    let told = told.chain(admin(&config)).chain(config.jwt_issuers().err().unwrap_or_default());
    let told = told.chain(Outside::of(&config).err().map(|fault| fault.to_string()));
    faults.extend(told.map(|text| Fault { line: lines.of_sentence(&text), text }));
    faults.sort_by(|a, b| (a.line, &a.text).cmp(&(b.line, &b.text)));
    // A file that two places read is one fault.
    faults.dedup();
    faults
}

/// The sentence, beginning with the key where it begins with a flag.
fn by_key(sentence: &str) -> String {
    let (word, rest) = sentence.split_once(' ').unwrap_or((sentence, ""));
    KEYS.iter().find(|(flag, _)| *flag == word).map_or_else(|| sentence.to_owned(), |(_, key)| format!("{key} {rest}"))
}

fn admin(config: &Config) -> Option<String> {
    let listen = &config.admin.listen;
    crate::admin::address(listen, config.admin.allow_remote).err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(text: &str) -> Vec<String> {
        faults(text).into_iter().map(|fault| format!("{}: {}", fault.line, fault.text)).collect()
    }

    #[test]
    fn all_kinds_of_faults_are_told_at_once() {
        let text = "[http]\nhost = \"0.0.0.0\"\nport = 0\ntrusted_proxies = [\"10.0.0.0/8\", \"everyone\"]\nallowed_origins = [\"app\"]\nbody = 3\n[admin]\nlisten = \"0.0.0.0:1\"\n[sentry]\ndsn_file = \"/no/such\"\n[auth]\nlocal_key_file = \"/no/such/key\"\nlocal_audience = \"a\"\n";
        let told = told(text);
        for begin in [
            "2: http.host 0.0.0.0 answers on every address",
            "3: http.port is 0; it must be from 1 to 65535",
            "4: http.trusted_proxies everyone: give a network",
            "5: http.allowed_origins app: give an origin",
            "6: http.body is no key",
            "8: admin.listen is 0.0.0.0:1, which others can reach",
            "10: sentry.dsn_file: /no/such cannot be read",
            "12: auth.local_key_file: ",
        ] {
            assert_eq!(told.iter().filter(|one| one.starts_with(begin)).count(), 1, "{begin} in {told:#?}");
        }
    }

    #[test]
    fn the_defaults_have_no_fault() {
        assert_eq!(told(crate::config::DEFAULT_TOML), Vec::<String>::new());
        assert_eq!(told(""), Vec::<String>::new());
    }
}
