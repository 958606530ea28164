//! Resources used by this process, as counted by the kernel.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

/// Returns the CPU seconds of this process, user and system.
pub fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Returns the CPU seconds of child processes that have ended. The kernel counts them in hundredths.
pub fn cpu_of_children() -> f64 {
    children(&fs::read_to_string("/proc/self/stat").unwrap_or_default())
}

/// Parses them. The program's name is in parentheses, and may contain anything.
fn children(stat: &str) -> f64 {
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: f64 = fields.skip(13).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
    ticks / 100.0
}

/// Returns the nanoseconds since 1970, the same for all processes of a machine.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the resident bytes, now and at their peak.
pub fn memory() -> (u64, u64) {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    (field(&text, "VmRSS:"), field(&text, "VmHWM:"))
}

/// Resets the peak.
pub fn forget_peak() {
    // If this fails, the peak is that of all phases, which is still correct.
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// Returns everything as JSON.
pub fn all() -> Value {
    let (resident, peak) = memory();
    json!({"cpu": cpu(), "rss": resident, "peak": peak})
}

fn field(status: &str, name: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    number.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        assert_eq!(field("Name:\tx\nVmHWM:\t   12 kB\nVmRSS:\t 10 kB\n", "VmHWM:"), 12 << 10);
        assert_eq!(field("Name:\tx\n", "VmHWM:"), 0);
        let (resident, peak) = memory();
        assert!(resident > 0 && peak >= resident);
        let stat = "7 (a ) b) S 1 2 3 4 5 6 7 8 9 10 11 12 150 75 20 0";
        assert_eq!(children(stat).to_string(), "2.25");
    }
}
