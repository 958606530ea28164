//! The command line of a client.

use std::path::PathBuf;

use anyhow::{Result, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

/// What a client is told when it is started.
#[derive(Debug)]
pub struct Arguments {
    /// The server and how to get in.
    pub kubeconfig: PathBuf,
    /// Which of its forms the program is to take: each knows its own.
    pub form: String,
    /// How many handlers are told of everything; of a controller, how many workers it has.
    pub handlers: usize,
    /// Whether there is an index by node.
    pub index: bool,
    /// The file of a snapshot, for forms that write or read one.
    pub snapshot: PathBuf,
}

impl Arguments {
    /// Those of this process.
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

    /// A client as programs make it.
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
