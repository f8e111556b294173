//! Which project a call is about: the one of the path, the one that the argument `project` names, or the only one that its caller may see.
//!
//! Promises: what a caller may not see is not there, in the same words and after the same steps as what is nowhere (house rule 3). The argument
//! is taken off before the tool decodes the rest; schemas show it only to whom may see several. Opening a project holds no async thread.
//! Does not: open anything; whoever implements [`Projects`] does.

use std::sync::Arc;

use serde_json::Value;

use super::{
    BoxFuture, Call, Refresh, Refusal, Reply,
    next::{Next, Step},
};
use crate::{
    auth::Caller,
    domain::{attempt::shorten, text::clean},
    store::{self, Store},
    tools::{self, Entry, ToolError},
};

/// The argument that names a project.
pub const ARGUMENT: &str = "project";
/// Names that a sentence lists at most.
const NAMED_MAX: usize = 20;

/// A project, opened for one caller.
#[derive(Clone)]
pub struct Project {
    /// What tells it from every other of this server: part of the cache's key and of cursors.
    pub id: Arc<str>,
    /// Its store.
    pub store: Arc<dyn Store>,
    /// Brings its index up to date with the files, waiting for a bounded time, and says what an answer should say of it.
    pub refresh: Refresh,
}

/// An organization and one of its projects, as a path or a caller names them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The organization.
    pub organization: Box<str>,
    /// The project.
    pub project: Box<str>,
}

/// Why no project was opened.
#[derive(Debug, Clone)]
pub enum Lost {
    /// There is none of that name that the caller may see.
    NotFound,
    /// There are several, and the call names none.
    Which,
    /// Its store cannot be opened.
    Store(store::Error),
}

/// What looking for a project comes to.
pub enum Found {
    /// It is open.
    Here(Project),
    /// It has to be opened first.
    Opening(BoxFuture<Result<Project, Lost>>),
    /// There is none.
    Lost(Lost),
}

/// The projects of a server.
pub trait Projects: Send + Sync {
    /// The names of those that `caller` may see, in order.
    fn visible(&self, caller: &Caller) -> Vec<String>;

    /// Whether calls may name one: the argument is taken whoever calls, so that a script goes on working when a second project is made.
    fn named(&self) -> bool {
        true
    }

    /// Whether `caller`'s calls must name theirs.
    fn several(&self, caller: &Caller) -> bool {
        self.visible(caller).len() > 1
    }

    /// The one at `place`, else the one that `named` names (which must be the same where both are given), else the only one that `caller` may see.
    fn find(&self, caller: &Caller, place: Option<&Place>, named: Option<&str>) -> Found;
}

/// The projects of a server that has one, which every caller may see.
pub struct Only(pub Project);

impl Projects for Only {
    fn visible(&self, _: &Caller) -> Vec<String> {
        vec![self.0.id.to_string()]
    }

    fn named(&self) -> bool {
        false
    }

    fn several(&self, _: &Caller) -> bool {
        false
    }

    fn find(&self, _: &Caller, _: Option<&Place>, named: Option<&str>) -> Found {
        if named.is_none_or(|named| named == &*self.0.id) { Found::Here(self.0.clone()) } else { Found::Lost(Lost::NotFound) }
    }
}

/// Whether the registry adds the argument to what `entry` takes from `caller`, who came to `place`.
#[must_use]
pub fn asked_of(projects: &dyn Projects, entry: &Entry, caller: &Caller, place: Option<&Place>) -> bool {
    entry.of_project && entry.project_argument.is_none() && place.is_none() && !caller.is_nobody() && projects.several(caller)
}

/// The step.
pub struct ProjectStep {
    projects: Arc<dyn Projects>,
}

impl ProjectStep {
    /// The step over these.
    #[must_use]
    pub const fn new(projects: Arc<dyn Projects>) -> Self {
        Self { projects }
    }

    async fn find(&self, call: &mut Call) -> Result<Project, Refusal> {
        let own = Some(ARGUMENT).filter(|_| self.projects.named());
        let named = match call.entry.project_argument.or(own) {
            Some(argument) => taken_off(call, argument)?,
            None => None,
        };
        let found = match self.projects.find(&call.caller, call.place.as_deref(), named.as_deref()) {
            Found::Here(project) => return Ok(project),
            Found::Opening(opening) => opening.await,
            Found::Lost(lost) => Err(lost),
        };
        found.map_err(|lost| self.refused(lost, call, named.as_deref()))
    }

    fn refused(&self, lost: Lost, call: &Call, named: Option<&str>) -> Refusal {
        let argument = call.entry.project_argument.unwrap_or(ARGUMENT);
        Refusal::Tool(match (lost, named) {
            (Lost::Store(error), _) => ToolError::from(error),
            (Lost::NotFound, Some(named)) => {
                ToolError::NotFound(format!("argument {argument}: there is no project \"{}\"", clean(&shorten(named, 80))))
            }
            (Lost::NotFound, None) => ToolError::NotFound("there is no project that you may see".to_owned()),
            (Lost::Which, _) => {
                let mut names = self.projects.visible(&call.caller);
                let more = if names.len() > NAMED_MAX { " and more" } else { "" };
                names.truncate(NAMED_MAX);
                ToolError::Argument(format!("argument {argument}: say which project; there are {}{more}", names.join(", ")))
            }
        })
    }
}

/// The project that the arguments name, which are without it then.
fn taken_off(call: &mut Call, argument: &str) -> Result<Option<String>, Refusal> {
    match call.arguments.remove(argument) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(name)) => Ok(Some(name)),
        Some(_) => Err(Refusal::Tool(ToolError::Argument(format!("argument {argument}: give the project's name as a text")))),
    }
}

impl Step for ProjectStep {
    async fn take<N: Next>(self: Arc<Self>, mut call: Call, mut next: N) -> Reply {
        if call.entry.of_project && !std::ptr::eq(call.entry, &raw const tools::UNKNOWN) {
            call.project = Some(self.find(&mut call).await?);
        } else {
            call.projects = self.projects.visible(&call.caller).into();
        }
        next.call(call).await
    }
}
