//! `--tree`: an object and everything that it owns, directly or through others.

mod model;
mod run;

use std::sync::Arc;
use std::time::Duration;

use crate::chosen::{Chosen, types};
use crate::connect::Cluster;
use crate::discovery::{Type, Types};
use crate::outcome::Outcome;
use crate::scope;
use crate::screen::Screen;
use crate::signals::Stop;

/// The number of types that are watched at most. Each has its own list and watch.
const TYPES_MAX: usize = 300;

/// The tree that a command shows.
pub(crate) struct Request<'a> {
    /// The object at the root: `deploy/web`.
    pub(crate) root: &'a str,
    pub(crate) scope: &'a scope::Options,
    pub(crate) headers: bool,
    /// The time limit for the lists.
    pub(crate) patience: Duration,
    /// Whether to follow the tree, and for how long.
    pub(crate) follow: Follow,
}

/// Whether to print the tree once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Follow {
    Once,
    Until(Option<Duration>),
}

/// The object at the root.
#[derive(Debug)]
struct Root {
    of: Arc<Type>,
    name: String,
    /// The namespace of the whole tree; `None` if the root has no namespace.
    namespace: Option<String>,
}

/// Shows a tree. The error is a message for the user.
pub(crate) async fn tree(
    request: Request<'_>,
    cluster: Cluster,
    mut screen: Screen,
    mut stop: Stop,
) -> Result<Outcome, String> {
    let types = tokio::select! {
        biased;
        () = stop.requested() => return Ok(Outcome::Met),
        types = types(&cluster, request.patience) => types?,
    };
    let root = Root::find(&request, &types, &cluster)?;
    let mut owned = root.may_own(&types);
    if owned.len() > TYPES_MAX {
        let more = owned.len() - TYPES_MAX;
        screen.note(&format!("without {more} of the types: {TYPES_MAX} are watched at most"));
        owned.truncate(TYPES_MAX);
    }
    run::Running::start(request, root, &owned, cluster, screen)?.run(stop).await
}

impl Root {
    fn find(request: &Request<'_>, types: &Types, cluster: &Cluster) -> Result<Self, String> {
        let needed = "--tree needs one object, its owner: --tree deploy/web";
        let Some((word, name)) = request.root.split_once('/') else {
            return Err(needed.to_owned());
        };
        if name.is_empty() || name.contains([',', '/']) || word.contains(',') {
            return Err(needed.to_owned());
        }
        let of = match types.find(word)?.as_slice() {
            [of] if of.is_watchable() => Arc::new((*of).clone()),
            [of] => return Err(format!("{} cannot be listed and watched", of.name())),
            _ => return Err(format!("{word} is several types\n{needed}")),
        };
        let namespace = match request.scope.namespaces(cluster)?.as_slice() {
            _ if !of.namespaced => None,
            [one] => Some(one.clone()),
            [] if cluster.is_embedded() => Some(cluster.namespace.clone()),
            _ => return Err("--tree needs the namespace of its owner: -n NAMESPACE".to_owned()),
        };
        Ok(Self { of, name: name.to_owned(), namespace })
    }

    /// Returns the types whose objects the root may own, its own first. An object with a namespace
    /// owns only objects in the same namespace.
    fn may_own(&self, types: &Types) -> Vec<Chosen> {
        let mut chosen = vec![Chosen { of: self.of.clone(), name: None }];
        for of in &types.0 {
            let listed = of.is_watchable() && (of.namespaced || self.namespace.is_none());
            // Events belong to an object without being owned by it, and there are many of them.
            let known = |each: &Chosen| each.of.group == of.group && each.of.plural == of.plural;
            if listed && of.kind != "Event" && !chosen.iter().any(known) {
                chosen.push(Chosen { of: Arc::new(of.clone()), name: None });
            }
        }
        chosen
    }
}
