//! The README's first command.

use super::harness::{command, ran};

#[test]
fn the_demo_shows_a_regression_with_evidence_and_how_to_go_on() {
    let empty = tempfile::tempdir().unwrap();
    let ran = ran(command().current_dir(empty.path()).arg("demo").output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.err);
    for said in
        ["refund_policy", "regressed", "confirmed", "p=0.007812", "tool_use", "rp-clearance", "claude mcp add runlore", "mcpServers"]
    {
        assert!(ran.out.contains(said), "{said} in\n{}", ran.out);
    }
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0, "the demo leaves nothing behind");
}
