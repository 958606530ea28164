//! The command line of a client.

use std::path::PathBuf;

use anyhow::{Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// The command-line arguments of a client.
#[derive(Debug)]
pub struct Arguments {
    /// The kubeconfig of the server.
    pub kubeconfig: PathBuf,
    /// The variant of the program to run. Each program has its own variants.
    pub form: String,
    /// The number of handlers that receive every event; for a controller, the number of workers.
    pub handlers: usize,
    /// Whether there is an index by node.
    pub index: bool,
    /// The snapshot file, for variants that write or read one.
    pub snapshot: PathBuf,
}

impl Arguments {
    /// Parses the arguments of this process.
    pub fn of_process() -> Result<Self> {
        Self::of(std::env::args().skip(1))
    }

    fn of(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut found = Self {
            kubeconfig: PathBuf::new(),
            form: String::new(),
            handlers: 1,
            index: false,
            snapshot: PathBuf::new(),
        };
        while let Some(name) = arguments.next() {
            if name == "--index" {
                found.index = true;
                continue;
            }
            let Some(value) = arguments.next() else { bail!("{name} needs a value") };
            match &*name {
                "--kubeconfig" => found.kubeconfig = value.into(),
                "--form" => found.form = value,
                "--snapshot" => found.snapshot = value.into(),
                "--handlers" => found.handlers = value.parse()?,
                _ => bail!(
                    "there is no {name}; there are --kubeconfig FILE, --form NAME, --handlers N, --index, \
                     --snapshot FILE"
                ),
            }
        }
        Ok(found)
    }

    /// Returns a client, built as typical programs build it.
    pub async fn client(&self) -> Result<Client> {
        let kubeconfig = Kubeconfig::read_from(&self.kubeconfig)?;
        let options = KubeConfigOptions::default();
        Ok(Client::try_from(Config::from_custom_kubeconfig(kubeconfig, &options).await?)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Arguments> {
        Arguments::of(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn what_is_said_is_taken_and_what_is_not_known_is_refused() -> Result<()> {
        let found = of("--kubeconfig k --form packed --handlers 10 --index --snapshot s")?;
        assert_eq!((&*found.form, found.handlers, found.index), ("packed", 10, true));
        assert_eq!(found.snapshot, PathBuf::from("s"));
        assert!(of("--handlers many").is_err());
        assert!(of("--handlers").is_err());
        assert!(of("--color blue").is_err());
        Ok(())
    }
}
