//! Tools that write: what each says of itself, and the one way from a call to a deed (decisions 28 to 31).
//!
//! Promises: nothing is done without leave: the first call says what would be done and gives a handle, and a second one with it does that and
//! nothing else, once; a repeat under the same idempotency key is told what the first did. What a tool may do at all is one of [`Does`]: a tool
//! that came up with anything else would fail, and no release, baseline or merge is among them.
//! Does not: know who may call (the gate does), or keep anything (the store does, in the transaction of the write).

pub mod consent;
pub mod fields;
pub mod handle;

use clap::Command;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};

pub use self::consent::{Consent, Given, Handed, Leave, Rules};
use self::handle::{Bound, Handle, Way};
use super::{Answer, Ctx, Entry, ToolError, Toolset, Weight, arguments, canonical::digest};
use crate::{
    auth::Role,
    store::{
        Change,
        workspace::{Act, ActFault, Acted, Approval, Deed, Outcome, REMEMBERED_MS},
    },
};

/// The argument that gives leave.
pub const APPROVAL: &str = "approval";
/// The argument under whose text a repeat gets the first answer.
pub const IDEMPOTENCY_KEY: &str = "idempotency_key";
/// Characters of an idempotency key.
pub const KEY_CHARS_MAX: usize = 128;

/// What a tool does to what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It reads.
    Read,
    /// It writes.
    Write {
        /// What.
        does: Does,
        /// Whether something that was there is there no more.
        destructive: bool,
    },
}

impl Effect {
    /// Whether it writes.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(self, Self::Write { .. })
    }
}

/// All that tools can do. What decides a release has no word here: it cannot be a tool (decision 28).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Does {
    /// A new draft.
    CreateEvaluation,
    /// A case more.
    AddCase,
    /// A run is queued.
    StartRun,
    /// A trace is kept.
    CreateTrace,
    /// Lines are added to a trace.
    AddLines,
    /// A new source.
    CreateConnection,
    /// A source is changed.
    UpdateConnection,
    /// A source is synced no more.
    DeleteConnection,
    /// A source is looked at soon.
    SyncConnection,
}

impl Does {
    /// What `act` is; none where it is the command line's alone.
    #[must_use]
    pub const fn of(act: &Act) -> Option<Self> {
        match act {
            Act::CreateEvaluation(_) => Some(Self::CreateEvaluation),
            Act::AddCase { .. } => Some(Self::AddCase),
            Act::StartRun(_) => Some(Self::StartRun),
            Act::CreateTrace(_) => Some(Self::CreateTrace),
            Act::AddLines { .. } => Some(Self::AddLines),
            Act::CreateConnection { .. } => Some(Self::CreateConnection),
            Act::UpdateConnection { .. } => Some(Self::UpdateConnection),
            Act::DeleteConnection { .. } => Some(Self::DeleteConnection),
            Act::SyncConnection { .. } => Some(Self::SyncConnection),
            Act::SetStatus { .. } | Act::SetLock { .. } | Act::CancelRun { .. } | Act::AcceptBaseline { .. } | Act::ForgetRun { .. } => {
                None
            }
        }
    }
}

/// What would be done, for whoever gives leave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// In a sentence.
    pub summary: String,
    /// What will be other than it is, a sentence each.
    pub effects: Vec<String>,
}

/// One tool that writes. Implemented by an empty type; everything else derives from it.
pub trait Write {
    /// The name, in snake_case.
    const NAME: &'static str;
    /// The title that people see.
    const TITLE: &'static str;
    /// What it does, in a sentence or two.
    const DOC: &'static str;
    /// The toolsets that it is in.
    const TOOLSETS: &'static [Toolset] = &[Toolset::Workspace];
    /// The scopes of which the caller needs one of each group.
    const SCOPES: &'static [&'static [&'static str]];
    /// The least role.
    const ROLE: Role = Role::Member;
    /// Whether something that was there is there no more.
    const DESTRUCTIVE: bool = false;
    /// What it does.
    const DOES: Does;

    /// The arguments, without `project`, `approval` and `idempotency_key`.
    type Input: DeserializeOwned + Serialize + JsonSchema;
    /// What was done.
    type Done: Serialize + JsonSchema;

    /// What would be done. Reads only; says no where it can be known that it will come to nothing.
    ///
    /// # Errors
    /// [`ToolError`], whose text is for the caller.
    fn intent(ctx: &Ctx, input: &Self::Input) -> Result<Intent, ToolError>;

    /// The act, ready to be applied: with leave, or without where none is asked for. Everything that the store does not hold itself is held here.
    ///
    /// # Errors
    /// [`ToolError`], whose text is for the caller.
    fn act(ctx: &Ctx, input: Self::Input) -> Result<Act, ToolError>;

    /// What was done, as the caller is told; none where the store did something else.
    fn done(acted: Acted) -> Option<Self::Done>;

    /// The same as text for people.
    fn text(done: &Self::Done) -> String;
}

/// The result of a write: either what it needs leave for, or what it did.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Written<D> {
    /// Whether nothing was done yet.
    approval_required: bool,
    /// What leave is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    approval: Option<Asked>,
    /// What was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<D>,
    /// Whether an earlier call with the same idempotency key did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeated: Option<bool>,
}

/// The result of a write that nobody is asked for (the HTTP tool API): what it did.
#[derive(Debug, Serialize)]
struct Bare<D> {
    #[serde(flatten)]
    result: D,
    /// Whether an earlier call with the same idempotency key did it.
    repeated: bool,
}

/// What leave is asked for.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Asked {
    /// The argument `approval` of the call that acts.
    handle: String,
    /// Until when it holds.
    expires_at: String,
    /// What would be done.
    summary: String,
    /// What will be other than it is.
    effects: Vec<String>,
}

impl Entry {
    /// The row of a tool that writes.
    #[must_use]
    pub const fn writes<T: Write>() -> Self {
        Self {
            name: T::NAME,
            verb: T::NAME,
            alias: None,
            title: T::TITLE,
            about: "",
            doc: T::DOC,
            toolsets: T::TOOLSETS,
            scopes: T::SCOPES,
            role: T::ROLE,
            of_project: true,
            project_argument: None,
            released: true,
            text_arguments: &[],
            weight: Weight::Light,
            cacheable: false,
            effect: Effect::Write { does: T::DOES, destructive: T::DESTRUCTIVE },
            declared: None,
            input_schema: arguments::input_schema::<T::Input>,
            output_schema: arguments::output_schema::<Written<T::Done>>,
            // What writes is no verb (decision 48).
            command: || Command::new("none"),
            arguments: |_| Ok(Map::new()),
            canonical: super::canonical_of::<T::Input>,
            run: run::<T>,
        }
    }
}

fn run<T: Write>(ctx: &Ctx, given: Map<String, Value>) -> Result<Answer, ToolError> {
    let consent = ctx.consent.as_ref().ok_or_else(|| ToolError::Internal(format!("{} was called without consent", T::NAME)))?;
    let digest = digest(&given);
    let input: T::Input = arguments::decode(given)?;
    let bound = |way| Bound { identity: &consent.actor.identity, tool: T::NAME, digest: &digest, way };
    match (consent.leave, &consent.given) {
        (Leave::Direct, _) => deed::<T>(ctx, consent, &digest, None, input),
        (Leave::Ask, Given::Nothing) => asked::<T>(ctx, consent, bound(Way::Argument), &input),
        (Leave::AskByForm, Given::Nothing) => asked::<T>(ctx, consent, bound(Way::Form), &input),
        (_, Given::Handle(word)) => {
            let approval = bound(Way::Argument).taken(ctx, word)?;
            deed::<T>(ctx, consent, &digest, Some(approval), input)
        }
        (_, Given::Form { handle, approved }) => {
            // Whose form it was is looked at first: only an answer to one of ours is one.
            let approval = bound(Way::Form).taken(ctx, handle)?;
            if !approved {
                return Err(declined::<T>(ctx, consent, &digest, approval)?);
            }
            deed::<T>(ctx, consent, &digest, Some(approval), input)
        }
    }
}

/// A form that was answered with no is used up by it, with the row of the trail; what is said to it.
fn declined<T: Write>(ctx: &Ctx, consent: &Consent, digest: &str, approval: Approval) -> Result<ToolError, ToolError> {
    let deed = deed_of::<T>(ctx, consent, digest, Some(approval));
    consent.handed.over();
    let reason = format!("{} was not approved, so nothing was done", T::NAME);
    let change = Change::Refused { deed: Box::new(deed), outcome: "refused", reason: reason.clone() };
    ctx.store.apply(change).inspect_err(|_| consent.handed.back())?;
    consent.handed.recorded();
    Ok(ToolError::Said(reason))
}

/// Who does what by which leave.
fn deed_of<T: Write>(ctx: &Ctx, consent: &Consent, digest: &str, approval: Option<Approval>) -> Deed {
    Deed {
        actor: consent.actor.clone(),
        tool: T::NAME.to_owned(),
        digest: digest.to_owned(),
        at: ctx.now,
        approval,
        idempotency_key: consent.idempotency_key.clone(),
    }
}

/// Says what would be done and gives a handle; nothing is written.
fn asked<T: Write>(ctx: &Ctx, consent: &Consent, bound: Bound<'_>, input: &T::Input) -> Result<Answer, ToolError> {
    if let Some(key) = &consent.idempotency_key {
        let since = ctx.now.plus_millis(-REMEMBERED_MS);
        match ctx.store.remembered(&consent.actor.identity, T::NAME, key, since)? {
            Some(first) if first.digest == bound.digest => return done::<T>(consent.leave, first.acted, true),
            Some(_) => return Err(ActFault::KeyReused.into()),
            None => {}
        }
    }
    let Intent { summary, effects } = T::intent(ctx, input)?;
    let Handle { word, expires_at } = bound.given(ctx, ctx.rules.approval_ms)?;
    let expires_at = expires_at.rfc3339();
    let list = effects.iter().map(|effect| format!("- {effect}\n")).collect::<String>();
    let text = format!(
        "Nothing was done yet. {summary}\n{list}If that is wanted, call {} again with the same arguments and approval: \"{word}\" (until {expires_at}).",
        T::NAME
    );
    let approval = Some(Asked { handle: word, expires_at, summary, effects });
    answer(&Written::<T::Done> { approval_required: true, approval, result: None, repeated: None }, text)
}

/// Does it, in one transaction with its row of the trail.
fn deed<T: Write>(ctx: &Ctx, consent: &Consent, digest: &str, approval: Option<Approval>, input: T::Input) -> Result<Answer, ToolError> {
    let act = T::act(ctx, input)?;
    if Does::of(&act) != Some(T::DOES) {
        return Err(ToolError::Internal(format!("{} came up with another act than it may", T::NAME)));
    }
    let deed = deed_of::<T>(ctx, consent, digest, approval);
    consent.handed.over();
    let applied = ctx.store.apply(Change::Deed(Box::new((deed, act)))).inspect_err(|_| consent.handed.back())?;
    consent.handed.recorded();
    let Some(Outcome { done: came_to, repeated }) = applied.outcome else {
        return Err(ToolError::Internal(format!("the store says nothing of what {} came to", T::NAME)));
    };
    done::<T>(consent.leave, came_to?, repeated)
}

fn done<T: Write>(leave: Leave, acted: Acted, repeated: bool) -> Result<Answer, ToolError> {
    let result = T::done(acted).ok_or_else(|| ToolError::Internal(format!("{} was told of another act", T::NAME)))?;
    if leave == Leave::Direct {
        let bare = Bare { result, repeated };
        let text = serde_json::to_string_pretty(&bare).unwrap_or_default();
        return answer(&bare, text);
    }
    let text = T::text(&result);
    let text =
        if repeated { format!("{text} (done before, by a call with the same {IDEMPOTENCY_KEY}; nothing was done now)") } else { text };
    answer(&Written { approval_required: false, approval: None, result: Some(result), repeated: Some(repeated) }, text)
}

fn answer<D: Serialize>(written: &D, text: String) -> Result<Answer, ToolError> {
    let json = serde_json::value::to_raw_value(written).map_err(|error| ToolError::Internal(error.to_string()))?;
    Ok(Answer { json, text, lasting: false })
}

#[cfg(test)]
mod tests;
