//! Files made by hand: one trap each.

use sha2::{Digest as _, Sha256};

use super::{FORMATS, import, import_all, import_with};
use crate::{
    domain::{outcome::Outcome, time::Timestamp},
    importers::{Limits, beside},
};

fn suite(inside: &str) -> String {
    format!(
        r#"<testsuites><testsuite name="s" tests="99" failures="99" timestamp="2026-11-30T10:00:00" time="1,200.5">{inside}</testsuite></testsuites>"#
    )
}

#[test]
fn times_come_from_suites_else_from_the_file_else_from_nowhere() {
    let header = import(&suite("")).header;
    assert_eq!(header.created_at.rfc3339(), "2026-11-30T10:00:00Z");
    assert_eq!(header.completed_at.map(Timestamp::rfc3339).as_deref(), Some("2026-11-30T10:20:00.500Z"));
    let header = import(&suite("").replace("2026-11-30T10:00:00", "9999-12-31T23:50:00")).header;
    assert_eq!((header.created_at.rfc3339().as_str(), header.completed_at), ("9999-12-31T23:50:00Z", None));
    let without = "<testsuite name='s'><testcase name='a'/></testsuite>".as_bytes().to_vec();
    let whole = import_all(without.clone(), Timestamp::parse("2026-11-01T00:00:00Z"), &Limits::default()).unwrap();
    assert_eq!((whole.header.created_at.rfc3339().as_str(), whole.header.started_at), ("2026-11-01T00:00:00Z", None));
    assert_eq!(whole.complaints, Vec::<String>::new());
    let whole = import_all(without, None, &Limits::default()).unwrap();
    assert_eq!((whole.header.created_at.millis(), whole.complaints.len()), (0, 1));
}

#[test]
fn a_file_is_a_run_by_its_bytes() {
    let text = suite("<testcase name='a'/>");
    let digest = Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let header = import(&text).header;
    assert!(digest.starts_with(&header.log_id) && header.log_id.len() == 24 && header.run_key == header.log_id, "{}", header.log_id);
}

#[test]
fn the_worst_of_several_results_holds() {
    let whole = import(&suite(
        "<testcase classname='c' name='skip and error'><skipped message='no'/><error message='boom' type='E'>trace</error></testcase>
         <testcase classname='c' name='two failures'><failure message='one'/><failure message='two'>one</failure></testcase>
         <testcase classname='c' name='not run' status='notrun'/>
         <testcase classname='c' name='again'/><testcase classname='c' name='again'><failure/></testcase><testcase classname='c' name='again'><skipped/></testcase>",
    ));
    assert_eq!(whole.four(), [0, 2, 1, 1]);
    let first = whole.of("c::skip and error");
    assert_eq!((first.outcome, first.checks[0].name.as_str(), first.error.as_deref()), (Outcome::InfraError, "error", Some("boom\ntrace")));
    assert_eq!((first.checks[0].label.as_deref(), first.checks[1].name.as_str()), (Some("E"), "skipped"));
    assert_eq!(whole.of("c::two failures").checks.len(), 2);
    assert_eq!(whole.of("c::not run").checks[0].name, "skipped");
    // Not pytest's: two tests of one name are no reruns.
    assert_eq!(whole.of("c::again").retries, 0);
}

#[test]
fn surefire_says_reruns_inside() {
    let whole = import(&suite(
        "<testcase classname='c' name='flaky' time='0.5'><flakyFailure message='first' type='T'><stackTrace>at x</stackTrace><system-out>said</system-out></flakyFailure></testcase>
         <testcase classname='c' name='failed'><failure message='m'/><rerunFailure message='again'/><rerunError message='and again'/></testcase>",
    ));
    assert_eq!((whole.four(), whole.of("c::flaky").retries, whole.of("c::failed").retries), ([1, 1, 0, 0], 1, 2));
    assert_eq!(whole.lines(0), [r#"{"stream":"flakyFailure","type":"T","message":"first","text":"at xsaid"}"#]);
}

#[test]
fn properties_say_model_arm_epoch_and_cost() {
    let whole = import(
        r#"<testsuites><properties><property name="git.commit" value="0123abcd"/><property name="OPENAI_API_TOKEN" value="hunter2hunter2"/></properties>
        <testsuite name="s"><properties><property name="model" value="m1"/><property name="seed" value="7"/></properties>
          <testcase classname="c" name="a"><properties><property name="cost" value="0.25"/><property name="input-tokens" value="1,000"/><property name="x">y</property></properties></testcase>
          <testcase classname="c" name="a"><properties><property name="epoch" value="2"/></properties><failure/></testcase>
          <testcase classname="c" name="a"><properties><property name="arm" value="other"/></properties></testcase></testsuite>
        <testsuite name="t"><properties><property name="seed" value="8"/></properties><testcase classname="c" name="a"/></testsuite></testsuites>"#,
    );
    let rows: Vec<(&str, &str, u32)> =
        whole.attempts.iter().map(|attempt| (attempt.evaluation.as_str(), attempt.arm.as_str(), attempt.epoch)).collect();
    assert_eq!(rows, [("s", "m1", 1), ("s", "m1", 2), ("s", "other", 1), ("t", "default", 1)]);
    assert_eq!((whole.attempts[0].cost_usd, whole.attempts[0].usage.input_tokens), (Some(0.25), Some(1000)));
    assert_eq!(whole.lines(0)[2], r#"{"stream":"property","message":"x","text":"y"}"#);
    let header = &whole.header;
    assert_eq!(header.git.as_ref().and_then(|git| git.sha.as_deref()), Some("0123abcd"));
    assert_eq!((&header.metadata["seed"], &header.metadata["t.seed"]), (&"7".into(), &"8".into()));
    assert_eq!(header.metadata["OPENAI_API_TOKEN"], "[REDACTED]");
    assert_eq!(header.arms[0].factors["model"], "m1");
}

#[test]
fn tests_of_one_name_in_two_files_are_two_cases() {
    let whole = import(&suite(
        "<testcase classname='test' name='adds' file='/srv/b/1/a/x.test.js'/><testcase classname='test' name='adds' file='/srv/b/1/b/x.test.js'/>
         <testcase classname='test' name='other' file='/srv/b/1/b/x.test.js'/>",
    ));
    let ids: Vec<&str> = whole.attempts.iter().map(|attempt| attempt.case.as_str()).collect();
    assert_eq!(ids, [r#""a/x.test.js" test::adds"#, r#""b/x.test.js" test::adds"#, "test::other"]);
    let (with, without) = ("<testcase classname='c' name='n' file='f.js'/>", "<testcase classname='c' name='n'/>");
    for text in [[with, without].concat(), [without, with].concat()] {
        let whole = import(&suite(&text));
        assert_eq!(whole.attempts.len(), 2, "{text}");
        assert!(whole.of(r#""f.js" c::n"#).outcome == Outcome::Pass && whole.of("c::n").outcome == Outcome::Pass);
    }
}

#[test]
fn output_is_lines() {
    let whole = import(&suite(
        "<testcase name='a'><system-out>\none &lt;1&gt;\n<![CDATA[ two <x/>\r\n]]>\x1b[0mthree</system-out><system-err>err</system-err><system-out>  \n</system-out></testcase>",
    ));
    assert_eq!(
        whole.lines(0),
        [
            r#"{"stream":"stdout","text":"one <1>"}"#,
            r#"{"stream":"stdout","text":" two <x/>"}"#,
            "{\"stream\":\"stdout\",\"text\":\"\u{FFFD}[0mthree\"}",
            r#"{"stream":"stderr","text":"err"}"#
        ]
    );
}

#[test]
fn output_of_a_suite_is_that_of_its_only_test() {
    let bazel = std::fs::read(format!("{FORMATS}/real/junit/bazel_suite-logs.xml")).unwrap();
    let whole = import_with(&bazel, &Limits::default()).unwrap();
    let lines = whole.lines(0).join("\n");
    assert!(lines.contains("ModuleNotFoundError") && lines.contains("test.err"), "{lines}");
    let two = import(&suite("<testcase name='a'/><testcase name='b'/><system-out>12345</system-out>"));
    assert_eq!((two.lines(0).len(), &two.header.metadata["suite_output_bytes_left_out"]), (0, &5.into()));
}

#[test]
fn other_encodings_are_read() {
    let text = "<?xml version='1.0' encoding='ISO-8859-1'?><testsuite name='été'><testcase name='a'/></testsuite>";
    let latin: Vec<u8> = text.chars().map(|character| character as u8).collect();
    let wide: Vec<u8> = [0xFEFF].into_iter().chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    let marked = [b"\xEF\xBB\xBF".as_slice(), text.replace("ISO-8859-1", "utf-8").as_bytes()].concat();
    for bytes in [latin, wide, marked] {
        let whole = import_with(&bytes, &Limits::default()).unwrap();
        assert_eq!((whole.attempts[0].evaluation.as_str(), whole.four()), ("été", [1, 0, 0, 0]));
        assert_eq!(whole.header.log_id, Sha256::digest(&bytes).iter().take(12).map(|byte| format!("{byte:02x}")).collect::<String>());
    }
}

#[test]
fn nothing_beside_a_file_says_no_time() {
    assert_eq!(beside::Beside::own_modified(&beside::Alone), None);
}
