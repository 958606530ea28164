//! Assigns pods to nodes. Unlike a real scheduler, it considers only `nodeSelector` and cordons.

use std::collections::BTreeMap;

use serde_json::Value;

use super::node;
use crate::print::read::{entries, flag, items, text, text_or};

pub(super) const CORDONED: &str = "node(s) were unschedulable";
pub(super) const NOT_SELECTED: &str = "node(s) didn't match Pod's node affinity/selector";

/// The attributes of a node that affect scheduling.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) address: String,
    labels: BTreeMap<String, String>,
    cordoned: bool,
}

impl Node {
    pub(super) fn read(node: &Value) -> Self {
        let labels = entries(&node["metadata"]["labels"])
            .map(|(name, value)| (name.to_owned(), text(value).to_owned()));
        let address = items(&node["status"]["addresses"])
            .iter()
            .find(|address| text(&address["type"]) == "InternalIP")
            .map_or(node::ADDRESS, |address| text_or(&address["address"], node::ADDRESS));
        Self {
            name: text(&node["metadata"]["name"]).to_owned(),
            address: address.to_owned(),
            labels: labels.collect(),
            cordoned: flag(&node["spec"]["unschedulable"]),
        }
    }

    /// Returns why the pod cannot run on this node.
    fn refusal(&self, pod: &Value) -> Option<&'static str> {
        if self.cordoned {
            return Some(CORDONED);
        }
        let mut wanted = entries(&pod["spec"]["nodeSelector"]);
        let fits =
            wanted.all(|(name, value)| self.labels.get(name).is_some_and(|l| l == text(value)));
        (!fits).then_some(NOT_SELECTED)
    }
}

/// Returns the node for a pod, or the reason why there is none, in the scheduler's words. The
/// server's own node is preferred: other nodes are there for a test's own purposes.
pub(super) fn place<'a>(pod: &Value, nodes: &'a [Node]) -> Result<&'a Node, String> {
    if nodes.is_empty() {
        return Err("no nodes available to schedule pods".to_owned());
    }
    let mut refusals: BTreeMap<&str, usize> = BTreeMap::new();
    let mut fitting = Vec::new();
    for node in nodes {
        match node.refusal(pod) {
            Some(why) => *refusals.entry(why).or_default() += 1,
            None => fitting.push(node),
        }
    }
    let own = fitting.iter().find(|node| node.name == node::NAME);
    own.or(fitting.first()).copied().ok_or_else(|| {
        let mut reasons: Vec<_> =
            refusals.iter().map(|(why, count)| format!("{count} {why}")).collect();
        reasons.sort();
        let (all, reasons) = (nodes.len(), reasons.join(", "));
        format!(
            "0/{all} nodes are available: {reasons}. preemption: 0/{all} nodes are available: \
             {all} Preemption is not helpful for scheduling."
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(name: &str, zone: &str, cordoned: bool) -> Node {
        Node::read(&json!({
            "metadata": {"name": name, "labels": {"zone": zone}},
            "spec": {"unschedulable": cordoned},
        }))
    }

    #[test]
    fn a_pod_goes_where_it_is_selected_to() {
        let nodes = [node("a", "1", false), node(node::NAME, "2", false), node("c", "3", true)];
        let placed = |selector: Value| {
            let pod = json!({"spec": {"nodeSelector": selector}});
            place(&pod, &nodes).map(|node| node.name.clone())
        };
        assert_eq!(placed(Value::Null).as_deref(), Ok(node::NAME));
        assert_eq!(placed(json!({"zone": "1"})).as_deref(), Ok("a"));
        assert_eq!(
            placed(json!({"zone": "3"})).unwrap_err(),
            "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) didn't match Pod's \
             node affinity/selector. preemption: 0/3 nodes are available: 3 Preemption is not \
             helpful for scheduling."
        );
    }

    #[test]
    fn without_nodes_nothing_runs() {
        assert_eq!(
            place(&json!({}), &[]).unwrap_err(),
            "no nodes available to schedule pods".to_owned()
        );
    }
}
