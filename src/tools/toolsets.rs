//! Which groups of tools are offered: the operator chooses, a caller may narrow (decision 51).
//!
//! Promises: narrowing never widens; a word that names no group is refused with those there are.
//! Does not: know callers.

use super::Entry;

/// The groups that an operator switches on and a caller narrows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Toolset {
    /// What happened, run by run.
    History,
    /// Any question, in SQL.
    Query,
    /// What there is, at a glance, and where to find it.
    Catalog,
    /// What can be planned and changed.
    Workspace,
    /// The runs of one evaluation, as other systems know them.
    Projections,
    /// What programs of the operator's answer.
    Commands,
}

impl Toolset {
    /// Every group.
    pub const ALL: [Toolset; 6] =
        [Toolset::History, Toolset::Query, Toolset::Catalog, Toolset::Workspace, Toolset::Projections, Toolset::Commands];

    /// The group's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Toolset::History => "history",
            Toolset::Query => "query",
            Toolset::Catalog => "catalog",
            Toolset::Workspace => "workspace",
            Toolset::Projections => "projections",
            Toolset::Commands => "commands",
        }
    }
}

/// Some of the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Toolsets([bool; Toolset::ALL.len()]);

impl Default for Toolsets {
    fn default() -> Self {
        Self([true; Toolset::ALL.len()])
    }
}

impl Toolsets {
    /// The groups that `words` names, with commas between.
    ///
    /// # Errors
    /// A sentence that names the word that is none.
    pub fn parse(words: &str) -> Result<Self, String> {
        let mut chosen = [false; Toolset::ALL.len()];
        for word in words.split(',').map(str::trim) {
            let place = Toolset::ALL.iter().position(|toolset| toolset.word() == word).and_then(|place| chosen.get_mut(place));
            *place.ok_or_else(|| {
                let there = Toolset::ALL.map(Toolset::word).join(", ");
                format!(
                    "toolsets: \"{}\" is none; there are {there}",
                    crate::domain::text::clean(&crate::domain::attempt::shorten(word, 40))
                )
            })? = true;
        }
        Ok(Self(chosen))
    }

    /// What `runlore mcp` offers where nobody says otherwise: an agent pays for every schema.
    #[must_use]
    pub fn local() -> Self {
        Self(Toolset::ALL.map(|toolset| matches!(toolset, Toolset::History | Toolset::Query | Toolset::Catalog)))
    }

    /// What `runlore serve` offers where nobody says otherwise: what runs programs is the operator's decision.
    #[must_use]
    pub fn served() -> Self {
        Self(Toolset::ALL.map(|toolset| toolset != Toolset::Commands))
    }

    /// Whether `toolset` is one of them.
    #[must_use]
    pub fn has(self, toolset: Toolset) -> bool {
        Toolset::ALL.iter().zip(self.0).any(|(other, chosen)| chosen && *other == toolset)
    }

    /// What is in both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let mut both = self;
        both.0.iter_mut().zip(other.0).for_each(|(mine, its)| *mine &= its);
        both
    }

    /// Whether one of the entry's groups is among these; what is in no group always is.
    #[must_use]
    pub fn offer(self, entry: &Entry) -> bool {
        let among = |toolset: &Toolset| Toolset::ALL.iter().zip(self.0).any(|(other, chosen)| chosen && other == toolset);
        entry.toolsets.is_empty() || entry.toolsets.iter().any(among)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrowing_never_widens() {
        let (history, query) = (Toolsets::parse("history").unwrap(), Toolsets::parse("query, history").unwrap());
        let offered = |toolsets: Toolsets| {
            crate::tools::ENTRIES.iter().filter(|entry| toolsets.offer(entry)).map(|entry| entry.name).collect::<Vec<_>>()
        };
        assert_eq!(offered(history.and(query)), offered(history));
        assert!(offered(history).contains(&"compare") && !offered(history).contains(&"query"));
        assert_eq!(offered(Toolsets::default()).len(), crate::tools::ENTRIES.len());
        assert_eq!(offered(Toolsets::local()), offered(Toolsets::parse("query,history,catalog").unwrap()));
        assert_eq!(
            Toolsets::parse("history,sql").unwrap_err(),
            "toolsets: \"sql\" is none; there are history, query, catalog, workspace, projections, commands"
        );
    }
}
