//! What a process has used of its machine. Read from `/proc`, so Linux only; elsewhere unknown.

/// Processor time of the process so far, user and system, in microseconds.
pub fn cpu_us() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name, in parentheses, may hold blanks; fields are counted behind it.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    // Linux shows 100 ticks a second, whatever the kernel's own clock.
    Some(ticks * 10_000)
}

/// The most memory that the process had resident, in bytes.
pub fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    #[test]
    fn this_process_has_used_something() {
        assert!(super::cpu_us().is_some());
        assert!(super::peak_resident_bytes().unwrap() > 1 << 20);
    }
}
