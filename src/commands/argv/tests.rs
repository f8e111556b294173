//! Every rule for building a command line, and that none of them can be got round.

use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::config::Config;

const BOUNDS: Bounds = Bounds { value_bytes_max: 100, values_max: 5 };

const DECLARED: &str = r#"
[[command]]
name = "probe"
description = "x"
program = "probe"
args = ["sub", "--quiet"]
json_flag = "--json"
[[command.option]]
name = "text"
flag = "--text"
[[command.option]]
name = "tags"
flag = "--tag"
repeated = true
[[command.option]]
name = "arms"
flag = "--arms"
repeated = true
one_flag = true
[[command.option]]
name = "limit"
flag = "-n"
type = "integer"
[[command.option]]
name = "margin"
flag = "--margin"
type = "number"
[[command.option]]
name = "all"
flag = "--all"
type = "boolean"
[[command.option]]
name = "dataset"
flag = "--dataset"
type = "name"
[[command.option]]
name = "sort"
flag = "--sort"
type = "choice"
choices = ["name", "time"]
[[command.option]]
name = "item"
flag = "--item"
public = false
[[command.positional]]
name = "run"
required = false
[[command.positional]]
name = "files"
required = false
repeated = true
"#;

const REQUIRED: &str = r#"
[[command]]
name = "probe"
description = "x"
program = "probe"
[[command.option]]
name = "goals"
flag = "--goal"
repeated = true
required = true
[[command.positional]]
name = "run"
"#;

fn command(text: &str) -> Command {
    Config::parse(text, "x").unwrap().command.remove(0)
}

fn words_of(text: &str, arguments: &Value, public: bool) -> Result<String, String> {
    let arguments = arguments.as_object().unwrap();
    build(&command(text), BOUNDS, arguments, public).map(|words| words.join(" ")).map_err(|error| error.to_string())
}

fn words(arguments: &Value) -> String {
    words_of(DECLARED, arguments, false).unwrap_or_else(|told| panic!("{arguments}: {told}"))
}

fn told(arguments: &Value) -> String {
    words_of(DECLARED, arguments, false).expect_err(&arguments.to_string())
}

#[test]
fn a_call_is_a_command_line_that_a_person_could_type() {
    assert_eq!(words(&json!({})), "sub --quiet --json");
    assert_eq!(words(&json!({"text": "a b", "all": true, "limit": 3})), "sub --quiet --json --text a b -n 3 --all");
    assert_eq!(words(&json!({"tags": ["a", "b"], "arms": ["c", "d"]})), "sub --quiet --json --tag a --tag b --arms c d");
    assert_eq!(words(&json!({"run": "r", "files": ["x", "y"], "sort": "time"})), "sub --quiet --json --sort time -- r x y");
    assert_eq!(words(&json!({"all": false, "tags": [], "files": []})), words(&json!({})));
}

#[test]
fn equal_calls_are_equal_words() {
    assert_eq!(words(&json!({"limit": 20.0})), words(&json!({"limit": 20})));
    assert_eq!(words(&json!({"margin": 0.5})), "sub --quiet --json --margin 0.5");
    assert_eq!(words(&json!({"margin": 2.0})), "sub --quiet --json --margin 2");
    assert_eq!(words(&json!({"margin": 1e300})), "sub --quiet --json --margin 1e+300");
    assert_eq!(words(&json!({"limit": u64::MAX})), format!("sub --quiet --json -n {}", u64::MAX));
    assert_eq!(words(&json!({"all": true, "text": "x"})), words(&json!({"text": "x", "all": true})));
}

#[test]
fn what_is_wrong_is_named_with_its_value_and_what_is_right() {
    for (arguments, sentence) in [
        (json!({"adapter": "mod:fn"}), "unknown argument `adapter`, expected one of `text`, `tags`"),
        (json!({"json": true}), "unknown argument `json`"),
        (json!({"--all": true}), "unknown argument `--all`"),
        (json!({"text": ["x", "--adapter", "mod:fn"]}), "argument text: it takes one value, not a list"),
        (json!({"tags": "x"}), "argument tags: \"x\" is no list"),
        (json!({"tags": [["x"]]}), "argument tags: a list is not a text"),
        (
            json!({"tags": ["x", "--adapter"]}),
            "argument tags: \"--adapter\" begins with -, which the command would read as an option of its own",
        ),
        (json!({"tags": ["a", "b", "c", "d", "e", "f"]}), "argument tags: 6 values; at most 5 are taken"),
        (json!({"text": {"a": 1}}), "argument text: an object is not a text"),
        (json!({"text": null}), "argument text: null is not a text"),
        (json!({"text": 3}), "argument text: 3 is not a text"),
        (json!({"text": "-"}), "argument text: \"-\" begins with -"),
        (json!({"text": "a\u{0}b"}), "has a NUL"),
        (json!({"text": "x".repeat(101)}), "has 101 bytes; at most 100 are taken"),
        (json!({"limit": "3"}), "argument limit: \"3\" is not a whole number"),
        (json!({"limit": 3.5}), "argument limit: 3.5 is not a whole number"),
        (json!({"limit": 1e300}), "argument limit: 1e+300 is not a whole number"),
        (json!({"limit": -1}), "argument limit: -1 begins with -"),
        (json!({"margin": -0.0}), "argument margin: -0.0 begins with -"),
        (json!({"margin": -0.5}), "argument margin: -0.5 begins with -"),
        (json!({"margin": true}), "argument margin: true is not a number"),
        (json!({"all": "true"}), "argument all: \"true\" is not true or false"),
        (json!({"all": 1}), "argument all: 1 is not true or false"),
        (json!({"all": null}), "argument all: null is not true or false"),
        (json!({"dataset": "../x"}), "argument dataset: \"../x\" is no name"),
        (json!({"dataset": "a/b"}), "is no name"),
        (json!({"dataset": "a\\b"}), "is no name"),
        (json!({"dataset": ".."}), "is no name"),
        (json!({"dataset": ""}), "is no name"),
        (json!({"sort": "size"}), "argument sort: \"size\" is none of name, time"),
        (json!({"files": ["x"]}), "argument files: it needs run too, which stands before it"),
    ] {
        let told = told(&arguments);
        assert!(told.contains(sentence), "{arguments}: {told}");
    }
}

#[test]
fn what_is_required_must_be_there_and_an_empty_list_is_not() {
    let told = |arguments: Value| words_of(REQUIRED, &arguments, false).unwrap_err();
    assert_eq!(told(json!({"run": "r"})), "missing argument `goals`");
    assert_eq!(told(json!({"run": "r", "goals": []})), "missing argument `goals`");
    assert_eq!(told(json!({"goals": ["g"]})), "missing argument `run`");
    assert_eq!(words_of(REQUIRED, &json!({"goals": ["g"], "run": "r"}), false).unwrap(), "--goal g -- r");
}

#[test]
fn what_is_not_public_is_not_there_for_strangers() {
    assert_eq!(words(&json!({"item": "i"})), "sub --quiet --json --item i");
    let told = words_of(DECLARED, &json!({"item": "i"}), true).unwrap_err();
    assert!(told.starts_with("unknown argument `item`, expected one of") && !told.contains(", `item`"), "{told}");
    assert_eq!(words_of(DECLARED, &json!({"text": "i"}), true).unwrap(), "sub --quiet --json --text i");
}

/// Whatever an agent may send.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[-/.\\\\a-z=\u{0}]{0,6}".prop_map(Value::from),
        ".*".prop_map(Value::from),
        prop_oneof!["--adapter", "--json", "--", "-n", "--text=x", "--all"].prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| prop_oneof![proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from), inner])
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof!["text|tags|arms|limit|margin|all|dataset|sort|item|run|files", "[a-z-]{0,6}"]
}

proptest! {
    #[test]
    fn no_word_begins_with_a_dash_but_what_is_declared(arguments in proptest::collection::btree_map(any_name(), any_value(), 0..5), public: bool) {
        let command = command(DECLARED);
        let arguments: Map<String, Value> = arguments.into_iter().collect();
        if let Ok(words) = build(&command, BOUNDS, &arguments, public) {
            let declared = |word: &String| command.args.contains(word) || *word == command.json_flag || command.option.iter().any(|one| one.flag == *word);
            let values = words.iter().filter(|word| word.starts_with('-') && !declared(word)).collect::<Vec<_>>();
            prop_assert!(values.len() <= 1 && values.iter().all(|word| *word == "--"), "{words:?}");
            // Each flag stands there as often as it was asked for: no value became one.
            for option in &command.option {
                let there = words.iter().filter(|word| **word == option.flag).count();
                let asked = match arguments.get(&option.name) {
                    Some(Value::Array(all)) if option.one_flag => usize::from(!all.is_empty()),
                    Some(Value::Array(all)) => all.len(),
                    Some(Value::Bool(false)) | None => 0,
                    Some(_) => 1,
                };
                prop_assert_eq!(there, asked, "{}: {:?}", option.flag, words);
            }
            prop_assert!(words.iter().all(|word| !word.contains('\0')));
            prop_assert!(!public || !words.contains(&"--item".to_owned()));
        }
    }

    #[test]
    fn numbers_are_written_so_that_they_are_read_as_themselves(number in any::<f64>()) {
        prop_assume!(number.is_finite() && number.is_sign_positive());
        let arguments = json!({"margin": number}).as_object().cloned().unwrap();
        let words = build(&command(DECLARED), BOUNDS, &arguments, false).unwrap();
        prop_assert_eq!(words.last().unwrap().parse::<f64>().unwrap(), number);
    }
}
