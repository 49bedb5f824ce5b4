//! The operators are pure: this crate's dependencies show neither Timely nor RocksDB.

use std::process::Command;

#[test]
fn cargo_tree_shows_neither() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_string());
    let tree = Command::new(cargo)
        .args(["tree", "-p", "tidegate-operators", "--edges", "normal,build", "--offline"])
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.contains("tidegate-state"), "{tree}");
    for name in ["timely", "rocksdb", "differential"] {
        assert!(!tree.contains(name), "the operators depend on {name}:\n{tree}");
    }
}
