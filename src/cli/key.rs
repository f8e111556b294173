//! `runlore key`: API keys of a server's organizations.
//!
//! Promises: a key's text is printed once, alone on standard output, so that a script can take it; it is kept nowhere. A running server knows a
//! new key, and refuses an old one, within `tenants.look_ms`.
//! Does not: send a key anywhere.

use clap::{ArgMatches, Args, Command, FromArgMatches as _, Subcommand};

use super::{
    CliError,
    control::{ControlArgs, refused},
    output::Output,
    session::Place,
};
use crate::{
    auth::{KNOWN_SCOPES, Role, api_key},
    clock,
    domain::{hex::hex, time::Timestamp},
    store::control::{ControlChange, KeyRow, NewKey},
};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The arguments of `runlore key`.
#[derive(Debug, Clone, Args)]
struct KeyArgs {
    /// What to do.
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Clone, Subcommand)]
enum Action {
    /// Make a key and print it, once.
    Create {
        /// The organization that it is for.
        #[arg(value_name = "ORGANIZATION")]
        organization: String,
        /// What people call it, such as ci.
        #[arg(long, value_name = "TEXT", value_parser = name)]
        name: String,
        /// What its holder may do at most: viewer, member, admin or owner.
        #[arg(long, value_name = "WORD", default_value = "viewer")]
        role: Role,
        /// What it is for; may be given several times. Without one: eval:read and runs:read. * is all that the role allows.
        #[arg(long = "scope", value_name = "SCOPE", value_parser = scope)]
        scopes: Vec<String>,
        /// Days after which it ends; without it, it does not.
        #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(i64).range(1..=3650))]
        expires_in: Option<i64>,
        /// Where it is kept.
        #[command(flatten)]
        control: ControlArgs,
    },
    /// List the keys, without their texts.
    List {
        /// Those of this organization only.
        #[arg(value_name = "ORGANIZATION")]
        organization: Option<String>,
        /// Where they are kept.
        #[command(flatten)]
        control: ControlArgs,
    },
    /// Give a key another text and print it, once; the old one ends now.
    Rotate {
        /// The key's id, as the list has it.
        #[arg(value_name = "KEY_ID")]
        id: String,
        /// Where it is kept.
        #[command(flatten)]
        control: ControlArgs,
    },
    /// End a key now.
    Revoke {
        /// The key's id, as the list has it.
        #[arg(value_name = "KEY_ID")]
        id: String,
        /// Where it is kept.
        #[command(flatten)]
        control: ControlArgs,
    },
}

fn name(text: &str) -> Result<String, String> {
    let good = !text.trim().is_empty() && text.len() <= 100 && !text.chars().any(char::is_control);
    good.then(|| text.to_owned()).ok_or_else(|| "give a name of 1 to 100 bytes without control characters".to_owned())
}

fn scope(text: &str) -> Result<String, String> {
    let known = text == "*" || KNOWN_SCOPES.contains(&text);
    known.then(|| text.to_owned()).ok_or_else(|| format!("\"{text}\" is no scope; there are {} and *", KNOWN_SCOPES.join(", ")))
}

/// The verb.
#[must_use]
pub fn command() -> Command {
    KeyArgs::augment_args(Command::new("key")).about("Makes, lists, rotates and revokes the API keys of a server's organizations")
}

/// Does what was asked.
///
/// # Errors
/// [`CliError`], with the reason.
pub fn run(matches: &ArgMatches, place: &Place, output: &mut Output) -> Result<u8, CliError> {
    let args = KeyArgs::from_arg_matches(matches).map_err(|error| CliError::Usage(error.to_string()))?;
    match args.action {
        Action::Create { organization, name, role, scopes, expires_in, control } => {
            let scopes = if scopes.is_empty() { vec!["eval:read".to_owned(), "runs:read".to_owned()] } else { scopes };
            let now = clock::now();
            let expires_at = expires_in.map(|days| Timestamp::from_millis(now.millis().saturating_add(days.saturating_mul(DAY_MS))));
            let (text, digest) = api_key::generate().map_err(CliError::Refused)?;
            let id = new_id()?;
            let key = NewKey { id: &id, organization: &organization, name: &name, digest, role, scopes: &scopes, expires_at };
            control.open(place)?.apply(&ControlChange::Key(key), now).map_err(refused)?;
            shown_once(output, &format!("Made key {id} for {organization}: {role}, {}", scopes.join(" ")), &text);
        }
        Action::List { organization, control } => {
            let rows = control.open(place)?.keys(organization.as_deref()).map_err(refused)?;
            control.list(output, &["key", "organization", "name", "role", "scopes", "created", "used", "state"], &rows, cells);
        }
        Action::Rotate { id, control } => {
            let (text, digest) = api_key::generate().map_err(CliError::Refused)?;
            control.apply(place, &ControlChange::Rotate { id: &id, digest })?;
            shown_once(output, &format!("Key {id} has another text; the old one has ended"), &text);
        }
        Action::Revoke { id, control } => {
            control.apply(place, &ControlChange::Revoke { id: &id })?;
            output.say(&format!("Key {id} has ended."));
        }
    }
    Ok(0)
}

/// The sentence for the person goes to the other stream, so that the key alone can be taken by a script.
fn shown_once(output: &mut Output, sentence: &str, text: &str) {
    output.complain(&format!("{sentence}. Its text is shown this once:"));
    output.say(text);
}

/// An id that nobody else has, short enough to be typed.
fn new_id() -> Result<String, CliError> {
    let random = clock::random::<6>().map_err(CliError::Refused)?;
    Ok(format!("k{}", hex(&random)))
}

fn cells(row: &KeyRow) -> Vec<String> {
    let time = |time: Option<Timestamp>| time.map_or_else(|| "-".to_owned(), Timestamp::rfc3339);
    let state = match (row.revoked_at, row.expires_at) {
        (Some(at), _) => format!("revoked {}", at.rfc3339()),
        (None, Some(end)) if end <= clock::now() => format!("expired {}", end.rfc3339()),
        (None, Some(end)) => format!("until {}", end.rfc3339()),
        (None, None) => "holds".to_owned(),
    };
    let (scopes, created, used) = (row.scopes.join(" "), row.created_at.rfc3339(), time(row.used_at));
    vec![row.id.clone(), row.organization.clone(), row.name.clone(), row.role.clone(), scopes, created, used, state]
}
