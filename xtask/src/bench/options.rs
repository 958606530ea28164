//! The command line of `cargo xtask bench`.

pub(super) const USAGE: &str = "\
usage: cargo xtask bench [--quick] [--real] [--only NAME]… [--report]

  --quick       small numbers, in a few minutes: prints them, writes nothing, and fails when a ratio is below
                what peers/bench/floors.toml says
  --real        on the real kube-apiserver in place of the embedded server (built with Go where it is not there yet)
  --only NAME   the measures with this in their name: sync, events, latency, reconcile, relist, handlers,
                reads, idle, queue, fetch, warm, slope (of memory and time, from one sync to the next)
  --report      measures nothing: writes BENCHMARKS.md from what was measured last";

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) quick: bool,
    pub(super) real: bool,
    pub(super) report: bool,
    pub(super) only: Vec<String>,
}

impl Options {
    pub(super) fn of(arguments: &[String]) -> Result<Self, String> {
        let mut options = Self::default();
        let mut rest = arguments.iter();
        while let Some(argument) = rest.next() {
            match &**argument {
                "--quick" => options.quick = true,
                "--real" => options.real = true,
                "--report" => options.report = true,
                "--only" => match rest.next() {
                    Some(name) => options.only.push(name.clone()),
                    None => return Err(format!("--only needs a name\n\n{USAGE}")),
                },
                other => return Err(format!("there is no {other:?}\n\n{USAGE}")),
            }
        }
        if options.quick && options.real {
            return Err(format!(
                "--quick compares with floors that hold on the embedded server: leave out one of --quick and --real\n\n{USAGE}"
            ));
        }
        Ok(options)
    }

    pub(super) fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|only| name.contains(only.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Options, String> {
        Options::of(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn all_is_wanted_unless_something_is_named() -> Result<(), String> {
        assert!(of("")?.wants("sync"));
        let some = of("--quick --only sync --only read")?;
        assert!(some.quick && some.wants("sync-10000") && some.wants("reads"));
        assert!(!some.wants("events"));
        Ok(())
    }

    #[test]
    fn what_is_not_known_is_refused_with_the_usage() {
        for line in ["--only", "--fast", "sync", "--quick --real", "--real --only sync --quick"] {
            assert!(of(line).is_err_and(|message| message.contains("usage:")), "{line}");
        }
    }
}
