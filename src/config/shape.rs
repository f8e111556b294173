//! What a key of the config may be, and the declaration that makes a struct, its defaults and its rows of one text.
//!
//! Promises: a key cannot exist without its default, bounds and reason; a default or bound that does not fit the field's type does not
//! compile.
//! Does not: know any key; `keys` has them.

/// What a key may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A whole number within bounds, both included.
    Number {
        /// Its value where the config says nothing.
        default: u64,
        /// The least that is taken.
        min: u64,
        /// The most that is taken.
        max: u64,
        /// What it counts.
        unit: &'static str,
    },
    /// Yes or no.
    Flag {
        /// Its value where the config says nothing.
        default: bool,
    },
    /// A text.
    Text {
        /// Its value where the config says nothing.
        default: &'static str,
    },
    /// A list of texts.
    Texts {
        /// Its value where the config says nothing.
        default: &'static [&'static str],
        /// How many at most.
        most: usize,
    },
    /// A table of texts by names of the operator's own, none where the config says nothing.
    Pairs {
        /// How many at most.
        most: usize,
    },
    /// Tables of their own, none where the config says nothing.
    Tables {
        /// The keys of each.
        rows: &'static [Row],
        /// How many at most.
        most: usize,
    },
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The table that it stands in, such as `limits`.
    pub section: &'static str,
    /// Its name, such as `rows_limit`.
    pub key: &'static str,
    /// What it does, line by line.
    pub meaning: &'static [&'static str],
    /// Its type, default and bounds.
    pub shape: Shape,
    /// Why the default is what it is.
    pub reason: &'static str,
}

impl Row {
    /// Its name as complaints say it, with the section where it stands in one.
    #[must_use]
    pub fn full_name(&self) -> String {
        if self.section.is_empty() { self.key.to_owned() } else { format!("{}.{}", self.section, self.key) }
    }
}

/// One table of the config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// What it is about, line by line.
    pub about: &'static [&'static str],
    /// Its keys, in order.
    pub rows: &'static [Row],
}

impl Section {
    /// The section called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        super::keys::SECTIONS.iter().find(|section| section.name == name)
    }
}

/// A field's name as a key: `r#type` is `type`.
pub(super) const fn plain(name: &'static str) -> &'static str {
    match name.as_bytes() {
        [b'r', b'#', ..] => name.split_at(2).1,
        _ => name,
    }
}

macro_rules! shape {
    (text $default:expr) => {
        Shape::Text { default: $default }
    };
    (texts $default:expr, $most:expr) => {
        Shape::Texts { default: &$default, most: $most }
    };
    (pairs $most:expr) => {
        Shape::Pairs { most: $most }
    };
    (tables $rows:expr, $most:expr) => {
        Shape::Tables { rows: $rows, most: $most }
    };
    ($default:expr) => {
        Shape::Flag { default: $default }
    };
    ($default:expr, $min:expr, $max:expr, $unit:literal) => {
        Shape::Number { default: $default as u64, min: $min as u64, max: $max as u64, unit: $unit }
    };
}

macro_rules! bounds_fit {
    ($kind:ty; text $default:expr) => {};
    ($kind:ty; texts $default:expr, $most:expr) => {};
    ($kind:ty; pairs $most:expr) => {};
    ($kind:ty; tables $rows:expr, $most:expr) => {};
    ($kind:ty; $default:expr) => {};
    ($kind:ty; $default:expr, $min:expr, $max:expr, $unit:literal) => {
        const _: () = {
            let (min, default, max): ($kind, $kind, $kind) = ($min, $default, $max);
            assert!(min <= default && default <= max && max as u64 <= i64::MAX as u64);
        };
    };
}

macro_rules! sections {
    ($(
        $(#[doc = $about:literal])+
        $section:ident: $struct:ident {$(
            $(#[doc = $meaning:literal])+
            $key:ident: $kind:ty = ($($shape:tt)+), $reason:literal;
        )+}
    )+
    lists {$(
        $(#[doc = $said:literal])+
        $list:ident: $each:ty = ($($listed:tt)+), $because:literal;
    )+}) => {
        $(
            $(#[doc = $about])+
            #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
            #[serde(default, deny_unknown_fields)]
            pub struct $struct {
                $($(#[doc = $meaning])+ pub $key: $kind,)+
            }

            impl Default for $struct {
                fn default() -> Self {
                    Self { $($key: first!($($shape)+),)+ }
                }
            }

            $(bounds_fit!($kind; $($shape)+);)+
        )+

        /// The whole configuration; each key has its default where the file says nothing.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Config {
            $($(#[doc = $about])+ pub $section: $struct,)+
            $($(#[doc = $said])+ pub $list: $each,)+
        }

        /// The tables that stand in no section and may stand several times, such as `[[command]]`.
        pub const LISTS: &[Row] = &[$(Row {
            section: "",
            key: stringify!($list),
            meaning: &[$($said),+],
            shape: shape!($($listed)+),
            reason: $because,
        }),+];

        /// Every table of the config, in the order of the documents.
        pub const SECTIONS: &[Section] = &[$(Section {
            name: stringify!($section),
            about: &[$($about),+],
            rows: &[$(Row {
                section: stringify!($section),
                key: crate::config::shape::plain(stringify!($key)),
                meaning: &[$($meaning),+],
                shape: shape!($($shape)+),
                reason: $reason,
            }),+],
        }),+];
    };
}

/// One kind of table that may stand several times: its struct, and its rows; `$section` is what stands before its tables' names.
macro_rules! tables {
    (
        $(#[doc = $about:literal])+
        $section:literal, $rows:ident: $struct:ident {$(
            $(#[doc = $meaning:literal])+
            $key:ident: $kind:ty = ($($shape:tt)+), $reason:literal;
        )+}
    ) => {
        $(#[doc = $about])+
        #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $struct {
            $($(#[doc = $meaning])+ pub $key: $kind,)+
        }

        impl Default for $struct {
            fn default() -> Self {
                Self { $($key: first!($($shape)+),)+ }
            }
        }

        $(bounds_fit!($kind; $($shape)+);)+

        $(#[doc = $about])+
        pub const $rows: &[Row] = &[$(Row {
            section: $section,
            key: crate::config::shape::plain(stringify!($key)),
            meaning: &[$($meaning),+],
            shape: shape!($($shape)+),
            reason: $reason,
        }),+];
    };
}

macro_rules! first {
    (text $default:expr) => {
        String::from($default)
    };
    (texts $default:expr, $most:expr) => {
        <[&str]>::iter(&$default).map(|text| String::from(*text)).collect()
    };
    (pairs $most:expr) => {
        std::collections::BTreeMap::new()
    };
    (tables $rows:expr, $most:expr) => {
        Vec::new()
    };
    ($default:expr $(, $rest:expr)*) => {
        $default
    };
}
