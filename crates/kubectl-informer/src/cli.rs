//! The table of commands and flags, from which help, completion and the man page are generated.

use clap::{Parser, Subcommand};

use crate::{completion, doctor, get, man, serve, top, watch};

/// Watches Kubernetes the way a controller does: through an informer.
///
/// `watch` shows what is added, updated and deleted, and goes on through everything that happens
/// between here and the API server. Without a kubeconfig it shows an embedded demo cluster on a
/// terminal. Every command has a help with examples of its own: `watch --help`.
///
/// Put on the PATH as kubectl-informer, it can also be called as `kubectl informer`.
#[derive(Debug, Parser)]
#[command(version, bin_name = "kubectl-informer", max_term_width = 100, after_help = BEGIN)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Watch(Box<watch::Options>),
    Get(Box<get::Options>),
    Doctor(Box<doctor::Options>),
    Top(Box<top::Options>),
    Serve(serve::Options),
    Completion(completion::Options),
    Man(man::Options),
}

const BEGIN: &str = "\
Begin with:  kubectl informer watch pods
Examples:    kubectl informer --help, and --help of each command";

const EXAMPLES: &str = "\
Examples:
  kubectl informer watch pods                            # what happens, as it happens
  kubectl informer get pods -A --by spec.nodeName        # how many on each node, through an index
  kubectl informer doctor                                # would informers work here
  kubectl informer top -A                                # what changes most
  kubectl informer serve --demo                          # a small living cluster to try things on

Exit codes: 0 fine, 1 what was asked for is not so, 2 an error.";
