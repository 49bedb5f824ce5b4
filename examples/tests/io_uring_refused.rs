//! The program on a system that refuses io_uring, as many containers do: the same results, one
//! message, and nothing on standard output that does not belong there.

#![cfg(target_os = "linux")]

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
use std::collections::BTreeMap;
use std::process::{Command, Output};

const ORDERS: &str = "../traces/orders.csv.gz";

/// Replays the orders with little memory, so that they are read from files.
fn replay(more: &[&str]) -> Output {
    let fields = ["--key", "customer", "--value", "amount", "--time-unit", "ms", "--max-lag", "5s"];
    let small = ["--memory", "4MiB", "--cache", "0", "--report", "-", "--output", "none", "--quiet"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(["replay", "running-totals", ORDERS]).args(fields).args(small).args(more);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

/// What the sinks got, out of a report that must be alone on standard output.
fn sinks(output: &Output) -> serde_json::Value {
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: standard output is {}", String::from_utf8_lossy(&output.stdout))
    });
    report["sinks"].clone()
}

/// Has the kernel refuse io_uring to this thread and to the processes it starts.
fn refuse_io_uring() {
    let refused = BTreeMap::from([(libc::SYS_io_uring_setup, Vec::new())]);
    let not_permitted = SeccompAction::Errno(libc::EPERM as u32);
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(refused, SeccompAction::Allow, not_permitted, architecture).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    apply_filter(&program).unwrap();
}

#[test]
fn f15_where_io_uring_is_refused_results_are_the_same_and_it_is_said_once() {
    let strategies = ["multiget", "threads", "auto"];
    let as_it_is: Vec<_> = strategies.map(|strategy| sinks(&replay(&["--strategy", strategy]))).into();
    refuse_io_uring();
    for (strategy, expected) in strategies.into_iter().zip(as_it_is) {
        for ahead in ["off", "on"] {
            let output = replay(&["--strategy", strategy, "--read-ahead", ahead]);
            assert_eq!(sinks(&output), expected, "{strategy}, read ahead {ahead}");
            let messages = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(messages.matches("refuses io_uring").count(), 1, "{messages}");
        }
    }
}
