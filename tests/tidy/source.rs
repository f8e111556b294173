//! The project's files, and Rust source as tokens: the paths it names, the functions it has, the lines of its tests.
//!
//! Promises: comments and text are never taken for code; a path is found in `use` trees, in expressions and inside macros; `super`,
//! `self`, aliases and child modules are resolved to paths of the crate.
//! Does not: understand types or macros that make paths; it reads what is written.

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
    process::Command,
};

/// One file of the project.
#[derive(Clone)]
pub struct File {
    /// Its path from the project's root.
    pub name: String,
    /// What it says.
    pub text: String,
}

/// A path that code names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its line, from 1.
    pub line: usize,
    /// Its segments; the first is `crate` for our own.
    pub path: Vec<String>,
    /// Whether only tests have it.
    pub test: bool,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// The line of its `fn`.
    pub line: usize,
    /// From there to its closing brace, both included.
    pub lines: usize,
}

/// An attribute or call that a rule looks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mark {
    /// `#[ignore]`, `sleep(`, `todo!`, …
    pub what: String,
    /// Its line.
    pub line: usize,
    /// Whether only tests have it.
    pub test: bool,
}

/// What a Rust file says.
#[derive(Debug, Default)]
pub struct Source {
    /// The paths that it names, resolved.
    pub paths: Vec<Named>,
    /// Its functions, nested ones too.
    pub functions: Vec<Function>,
    /// Its attributes (`#[name]`), macro calls (`name!`) and calls (`name(`).
    pub marks: Vec<Mark>,
    /// Lines inside its test modules.
    pub test_lines: usize,
    /// The modules that it declares for tests only, as paths of the crate.
    pub test_modules: Vec<String>,
}

/// The project's root, as the runner says it; so the built test can be pointed at another work tree too.
pub fn root() -> PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// Every text file that git tracks or would; the source of the rules about text.
pub fn tracked() -> Vec<File> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let out = Command::new("git").args(arguments).current_dir(root()).output().expect("git is installed (tests/run installs it)");
    assert!(out.status.success(), "git ls-files failed: {}", String::from_utf8_lossy(&out.stderr));
    let names = String::from_utf8(out.stdout).expect("file names are UTF-8");
    let files: Vec<File> = names.split('\0').filter(|name| !name.is_empty()).filter_map(read).collect();
    assert!(files.iter().any(|file| file.name == "Cargo.toml"), "git ls-files saw no Cargo.toml: this is not the project's root");
    files
}

/// `None` for what is no text, and for what git still lists and the disk no longer has.
fn read(name: &str) -> Option<File> {
    let text = String::from_utf8(std::fs::read(root().join(name)).ok()?).ok()?;
    Some(File { name: name.to_owned(), text })
}

/// The module that a file under `src` is: `src/store/sqlite.rs` is `store::sqlite`, the roots are `main` and `lib`.
pub fn module(name: &str) -> Option<String> {
    let path = name.strip_prefix("src/")?.strip_suffix(".rs")?;
    Some(path.strip_suffix("/mod").unwrap_or(path).replace('/', "::"))
}

impl Source {
    /// Reads `file`; `modules` are the crate's, so that a child named without `self::` is known.
    pub fn read(file: &File, modules: &BTreeSet<String>) -> Self {
        let tokens: TokenStream = match file.text.parse() {
            Ok(tokens) => tokens,
            Err(error) => panic!("{}: it is no Rust source: {error}", file.name),
        };
        let root = module(&file.name).unwrap_or_default();
        let at = if root == "main" || root == "lib" { Vec::new() } else { root.split("::").map(str::to_owned).collect() };
        let mut reader = Reader { modules, aliases: BTreeMap::new(), found: Self::default() };
        reader.walk(tokens, &at, file.name.starts_with("tests/"));
        let raw = std::mem::take(&mut reader.found.paths);
        reader.found.paths = raw.into_iter().map(|named| reader.through_alias(named)).collect();
        reader.found
    }
}

struct Reader<'a> {
    modules: &'a BTreeSet<String>,
    aliases: BTreeMap<String, Vec<String>>,
    found: Source,
}

impl Reader<'_> {
    fn walk(&mut self, tokens: TokenStream, at: &[String], test: bool) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut index = 0;
        let mut item_is_test = test;
        while index < tokens.len() {
            index += self.step(&tokens[index..], at, &mut item_is_test, test);
        }
    }

    /// Takes one thing off the front of `rest`; how many tokens it was.
    fn step(&mut self, rest: &[TokenTree], at: &[String], item_is_test: &mut bool, test: bool) -> usize {
        if let Some((attribute, taken)) = attribute(rest) {
            *item_is_test |= is_cfg_test(&attribute);
            self.mark_attribute(&attribute, rest, *item_is_test);
            return taken;
        }
        let inside = *item_is_test;
        match rest {
            [TokenTree::Ident(word), next, ..] if word == "use" && !is_punct(next, '<') => {
                return self.take_use(rest, at, std::mem::replace(item_is_test, test));
            }
            [TokenTree::Ident(word), TokenTree::Ident(name), after, ..] if word == "mod" => {
                *item_is_test = test;
                if inside && !test {
                    self.found.test_lines += lines(after);
                }
                self.take_mod(&name.to_string(), after, at, inside);
                return 3;
            }
            [TokenTree::Ident(word), TokenTree::Ident(name), after @ ..] if word == "fn" => {
                self.take_fn(word.span().start().line, &name.to_string(), after)
            }
            _ => {}
        }
        if ends_item(&rest[0]) {
            *item_is_test = test;
        }
        self.take_code(rest, at, inside)
    }

    fn take_code(&mut self, rest: &[TokenTree], at: &[String], test: bool) -> usize {
        match rest {
            [TokenTree::Group(group), ..] => {
                self.walk(group.stream(), at, test);
                1
            }
            [TokenTree::Ident(_), ..] => {
                self.mark_call(rest, test);
                self.take_path(rest, at, test)
            }
            _ => 1,
        }
    }

    fn take_path(&mut self, rest: &[TokenTree], at: &[String], test: bool) -> usize {
        let (segments, taken) = path(rest);
        if segments.len() > 1 {
            self.name(rest[0].span().start().line, segments, at, test);
        }
        taken.max(1)
    }

    fn take_use(&mut self, rest: &[TokenTree], at: &[String], test: bool) -> usize {
        let end = rest.iter().position(|token| is_punct(token, ';')).unwrap_or(rest.len());
        let mut leaves = Vec::new();
        use_tree(&rest[1..end], &[], &mut leaves);
        for (line, segments, alias) in leaves {
            let resolved = self.resolve(segments.clone(), at);
            if let Some(alias) = alias.or_else(|| segments.last().cloned()) {
                self.aliases.insert(alias, resolved);
            }
            self.name(line, segments, at, test);
        }
        end + 1
    }

    fn take_mod(&mut self, name: &str, after: &TokenTree, at: &[String], test: bool) {
        let inner: Vec<String> = at.iter().cloned().chain([name.to_owned()]).collect();
        match after {
            TokenTree::Group(group) => self.walk(group.stream(), &inner, test),
            _ if test => self.found.test_modules.push(inner.join("::")),
            _ => {}
        }
    }

    fn take_fn(&mut self, line: usize, name: &str, after: &[TokenTree]) {
        for token in after {
            match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    let lines = group.span_close().end().line - line + 1;
                    return self.found.functions.push(Function { name: name.to_owned(), line, lines });
                }
                token if is_punct(token, ';') => return,
                _ => {}
            }
        }
    }

    fn name(&mut self, line: usize, segments: Vec<String>, at: &[String], test: bool) {
        let path = self.resolve(segments, at);
        self.found.paths.push(Named { line, path, test });
    }

    /// `super`, `self`, our own crate's name and children become paths from `crate`.
    fn resolve(&self, segments: Vec<String>, at: &[String]) -> Vec<String> {
        let ups = segments.iter().take_while(|segment| *segment == "super").count();
        let first = segments.first().map(String::as_str).unwrap_or_default();
        let child = at.iter().map(String::as_str).chain([first]).collect::<Vec<_>>().join("::");
        let (base, skip) = match first {
            "crate" | "runlore" => (&[][..], 1),
            "self" => (at, 1),
            "super" => (&at[..at.len().saturating_sub(ups)], ups),
            _ if self.modules.contains(&child) => (at, 0),
            _ => return segments,
        };
        ["crate".to_owned()].into_iter().chain(base.iter().cloned()).chain(segments.into_iter().skip(skip)).collect()
    }

    fn through_alias(&self, named: Named) -> Named {
        let Some((first, rest)) = named.path.split_first() else { return named };
        match self.aliases.get(first) {
            Some(whole) => Named { path: whole.iter().chain(rest).cloned().collect(), ..named },
            _ => named,
        }
    }

    fn mark_attribute(&mut self, attribute: &TokenStream, rest: &[TokenTree], test: bool) {
        let text = attribute.to_string();
        let name: String = text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect();
        let reasoned = if text.contains("reason") { " with a reason" } else { "" };
        self.found.marks.push(Mark { what: format!("#[{name}]{reasoned}"), line: rest[0].span().start().line, test });
    }

    fn mark_call(&mut self, rest: &[TokenTree], test: bool) {
        let (segments, taken) = path(rest);
        let suffix = match rest.get(taken) {
            Some(token) if is_punct(token, '!') => "!",
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Parenthesis => "(",
            _ => return,
        };
        if let Some(name) = segments.last() {
            self.found.marks.push(Mark { what: format!("{name}{suffix}"), line: rest[0].span().start().line, test });
        }
    }
}

fn is_punct(token: &TokenTree, what: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == what)
}

fn lines(token: &TokenTree) -> usize {
    token.span().end().line - token.span().start().line + 1
}

fn ends_item(token: &TokenTree) -> bool {
    is_punct(token, ';') || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
}

/// The inside of the attribute (`#[..]` or `#![..]`) that `rest` starts with, and how many tokens it takes.
fn attribute(rest: &[TokenTree]) -> Option<(TokenStream, usize)> {
    let bracketed = |group: &proc_macro2::Group| group.delimiter() == Delimiter::Bracket;
    match rest {
        [hash, TokenTree::Group(group), ..] if is_punct(hash, '#') && bracketed(group) => Some((group.stream(), 2)),
        [hash, bang, TokenTree::Group(group), ..] if is_punct(hash, '#') && is_punct(bang, '!') && bracketed(group) => {
            Some((group.stream(), 3))
        }
        _ => None,
    }
}

fn is_cfg_test(attribute: &TokenStream) -> bool {
    let text: String = attribute.to_string().split_whitespace().collect();
    text == "test" || text == "cfg(test)" || text.starts_with("cfg(all(test") || text == "tokio::test"
}

/// `a::b::c` at the front of `tokens`, and how many tokens it takes. `a` alone is one segment.
fn path(tokens: &[TokenTree]) -> (Vec<String>, usize) {
    let mut segments = Vec::new();
    let mut taken = 0;
    while let Some(TokenTree::Ident(word)) = tokens.get(taken) {
        segments.push(word.to_string());
        taken += 1;
        let more =
            matches!(tokens.get(taken..), Some([first, second, TokenTree::Ident(_), ..]) if is_punct(first, ':') && is_punct(second, ':'));
        if !more {
            break;
        }
        taken += 2;
    }
    (segments, taken)
}

type Leaf = (usize, Vec<String>, Option<String>);

/// The leaves of a `use` tree: line, whole path, and the name after `as`.
fn use_tree(tokens: &[TokenTree], before: &[String], leaves: &mut Vec<Leaf>) {
    for branch in tokens.split(|token| is_punct(token, ',')).filter(|branch| !branch.is_empty()) {
        let start = branch.iter().position(|token| !is_punct(token, ':')).unwrap_or(0);
        let branch = &branch[start..];
        let (segments, taken) = path(branch);
        let whole: Vec<String> = before.iter().cloned().chain(segments).collect();
        let last = branch.last();
        match last {
            Some(TokenTree::Group(group)) => use_tree(&group.stream().into_iter().collect::<Vec<_>>(), &whole, leaves),
            Some(token) => leaves.push(leaf(token.span().start().line, whole, branch.get(taken..).unwrap_or_default())),
            None => {}
        }
    }
}

fn leaf(line: usize, mut whole: Vec<String>, after: &[TokenTree]) -> Leaf {
    if whole.last().is_some_and(|segment| segment == "self") && whole.len() > 1 {
        whole.pop();
    }
    match after {
        [TokenTree::Ident(word), TokenTree::Ident(alias), ..] if word == "as" => (line, whole, Some(alias.to_string())),
        [.., star] if is_punct(star, '*') => (line, whole, Some(String::new())),
        _ => (line, whole, None),
    }
}
