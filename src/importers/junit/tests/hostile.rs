//! Files that lie, attack, are cut off, or are no tests at all.

use proptest::prelude::*;

use super::{FIXTURES, FORMATS, import_with};
use crate::importers::{Limits, Refused};

fn refused(text: &str) -> Refused {
    import_with(text.as_bytes(), &Limits::default()).err().unwrap_or_else(|| panic!("{text} was read"))
}

fn broken(text: &str, part: &str) {
    match refused(text) {
        Refused::Broken(why) => assert!(why.contains(part), "{why}"),
        Refused::NotALog(why) => panic!("{text}: {why}"),
    }
}

#[test]
fn other_xml_is_skipped() {
    for text in [
        "<html><body/></html>",
        "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0//EN\" \"http://www.w3.org/TR/xhtml1.dtd\"><html/>",
        "<?xml version='1.0'?>",
        "<",
        "<<",
        "<a",
        "<?xml version='1.0' encoding='EBCDIC-CP-US'?><project/>",
    ] {
        assert!(matches!(refused(text), Refused::NotALog(why) if why.starts_with("no tests: ")), "{text}");
    }
}

#[test]
fn a_dtd_is_refused_and_no_entity_is_expanded() {
    let laughs = (1..10).map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10))).collect::<String>();
    let bomb = format!(
        "<?xml version=\"1.0\"?><!DOCTYPE testsuites [<!ENTITY l0 \"lol\">{laughs}]><testsuites><testsuite name=\"&l9;\"/></testsuites>"
    );
    broken(&bomb, "the XML has a DTD; entities are not read");
    broken("<!DOCTYPE testsuites SYSTEM \"file:///etc/passwd\"><testsuites/>", "the XML has a DTD");
    broken("<!DOCTYPE testsuites[<!ENTITY x SYSTEM \"file:///etc/passwd\">]><testsuites>&x;</testsuites>", "the XML has a DTD");
    broken("<testsuites><testsuite name='&x;'/></testsuites>", "names the entity \"x\"");
    broken("<testsuites><testsuite>&x;</testsuite></testsuites>", "names the entity \"x\"");
    assert!(import_with(b"<!DOCTYPE testsuites><testsuites/>", &Limits::default()).is_ok());
}

#[test]
fn what_is_not_well_formed_is_refused() {
    for (text, part) in [
        ("<testsuites><testsuite></testsuites>", "byte 23"),
        ("<testsuites/><testsuites/>", "goes on after its root"),
        ("<testsuites/>junk", "text outside its root"),
        ("<testsuites/>\0\0", "text outside its root"),
        ("<testsuites><<testsuite/></testsuites>", "a tag has no name"),
        ("<testsuites><testsuite name='a'/id='b'/></testsuites>", "an attribute has no name"),
        ("<testsuites><testsuite name='a<testsuite name='/></testsuites>", "has a \"<\" in it"),
        ("<testsuites><testsuite name=x/></testsuites>", "byte 12"),
        ("<testsuites><testcase", "cut off"),
        ("<testsuites><testsuite>", "cut off"),
        ("<testsuites><![CDATA[ ", "cut off"),
        ("<testsuites>& </testsuites>", "byte"),
        ("<?xml version='1.0' encoding='EBCDIC-CP-US'?><testsuites/>", "ebcdic-cp-us"),
    ] {
        broken(text, part);
    }
}

#[test]
fn depth_attributes_and_cases_are_counted() {
    broken(&format!("<testsuite>{}", "<a>".repeat(100_000)), "nested deeper than 64");
    let attributes: String = (0..300).map(|n| format!(" a{n}='x'")).collect();
    broken(&format!("<testsuite{attributes}/>"), "more than 256 attributes");
    let limits = Limits { entries_max: 2, ..Limits::default() };
    let cases = format!("<testsuite>{}</testsuite>", "<testcase name='a'/>".repeat(3));
    assert!(matches!(import_with(cases.as_bytes(), &limits), Err(Refused::Broken(why)) if why.contains("more than 2 test cases")));
}

#[test]
fn of_a_text_that_is_too_long_the_rest_is_left_out() {
    let limits = Limits { entry_bytes_max: 300_000, ..Limits::default() };
    let long = "x".repeat(1_000_000);
    for (before, after) in [("", ""), ("<![CDATA[", "]]>"), ("<!--", "-->")] {
        let text = format!(
            "<testsuite><testcase name='a'><system-out>{before}{long}{after}end</system-out></testcase><testcase name='b'/></testsuite>"
        );
        let whole = import_with(text.as_bytes(), &limits).unwrap();
        assert_eq!((whole.attempts.len(), &whole.broken, whole.complaints.len()), (2, &None, 1), "{before}");
        assert!(whole.attempts[0].transcript.bytes < 310_000 && whole.complaints[0].starts_with("test case a: "), "{:?}", whole.complaints);
    }
    let tag = format!("<testsuite><testcase name='{long}'/></testsuite>");
    assert!(matches!(import_with(tag.as_bytes(), &limits), Err(Refused::Broken(why)) if why.contains("a tag takes more bytes")));
}

#[test]
fn bytes_that_are_no_utf8_are_replaced() {
    let text = b"<testsuite name='s'><testcase name='a\xFF'><failure message='\xE6\x97'>b\xC0c</failure></testcase></testsuite>";
    let whole = import_with(text, &Limits::default()).unwrap();
    assert_eq!(whole.attempts[0].case, "a\u{FFFD}");
    assert_eq!(whole.attempts[0].checks[0].reason.as_deref(), Some("\u{FFFD}\u{FFFD}\nb\u{FFFD}c"));
}

fn file(which: usize) -> Vec<u8> {
    let name = [
        format!("{FORMATS}/generated/junit/pytest_xunit1.xml"),
        format!("{FORMATS}/real/junit/bazel_suite-logs.xml"),
        format!("{FORMATS}/real/junit/with-xml-entities.xml"),
        format!("{FIXTURES}/pytest_reruns.xml"),
        format!("{FIXTURES}/node_nested.xml"),
    ];
    std::fs::read(&name[which]).unwrap()
}

/// Imports to the end, whatever the bytes are; what must not happen is a panic, or a file that changes while it is read.
fn survive(bytes: &[u8]) {
    let limits = Limits { entries_max: 1000, entry_bytes_max: 4096, ..Limits::default() };
    if let Ok(whole) = import_with(bytes, &limits) {
        assert_eq!(whole.broken, None);
        for attempt in 0..whole.attempts.len() {
            for line in whole.lines(attempt) {
                serde_json::from_str::<serde_json::Value>(&line).unwrap();
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_bytes_never_panic(
        which in 0_usize..5,
        end in any::<prop::sample::Index>(),
        whole in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), prop::sample::select(b"<>&;!-[]/?=\"' \0x#C\xff\xe6".to_vec()), any::<bool>()), 0..6),
    ) {
        let mut bytes = file(which);
        for (place, byte, insert) in changes {
            let place = place.index(bytes.len());
            if insert { bytes.insert(place, byte) } else { bytes[place] = byte }
        }
        if !whole {
            let end = end.index(bytes.len());
            bytes.truncate(end);
        }
        survive(&bytes);
    }

    #[test]
    fn markup_at_random_never_panics(parts in prop::collection::vec(prop::sample::select(vec![
        "<", ">", "<!", "<!--", "-->", "<!-->", "<![CDATA[", "]]>", "<?", "?>", "</", "/>", "&", "&lt;", "&#0;", "&#", ";", "<!DOCTYPE", "[", "]", "<testcase name='a'>",
        "</testcase>", "<testsuite>", "</testsuite>", "<failure>", "</failure>", "<system-out>", "</system-out>", "a", " ", "=", "'", "\"", "\0", "<testcase/>",
        "<properties>", "</properties>", "<property name='epoch' value='3'/>",
    ]), 0..30)) {
        survive(format!("<testsuite>{}", parts.concat()).as_bytes());
        survive(format!("<testsuite><testcase name='x'>{}</testcase></testsuite>", parts.concat()).as_bytes());
    }
}
