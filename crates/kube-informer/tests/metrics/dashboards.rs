//! The dashboard and the alerts of `docs/dashboards` use metrics that exist, with labels that they have.

use std::collections::BTreeSet;

use serde_json::Value;

use super::exposition::Exposition;
use super::names::whole_scrape;

const DASHBOARD: &str = include_str!("../../../../docs/dashboards/kube-informer.json");
const ALERTS: &str = include_str!("../../../../docs/dashboards/alerts.yaml");
const GUIDE: &str = include_str!("../../../../docs/monitoring.md");

/// The words with an underscore that are no metrics.
const FUNCTIONS: &[&str] = &["histogram_quantile", "label_values"];

/// The labels that Prometheus adds to every series, and that of buckets.
const ADDED_LABELS: &[&str] = &["job", "instance", "le"];

fn panels() -> Vec<Value> {
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("it is JSON");
    let panels = dashboard["panels"].as_array().expect("there are panels").clone();
    panels.into_iter().filter(|panel| panel["type"] != "row").collect()
}

fn rules() -> Vec<Value> {
    let alerts: Value = serde_saphyr::from_str(ALERTS).expect("it is YAML");
    let groups = alerts["groups"].as_array().expect("there are groups");
    groups
        .iter()
        .flat_map(|group| group["rules"].as_array().expect("it has rules").clone())
        .collect()
}

/// The queries of a panel.
fn queries(panel: &Value) -> Vec<String> {
    let targets = panel["targets"].as_array().expect("a panel has targets");
    targets
        .iter()
        .map(|target| target["expr"].as_str().expect("it has a query").to_owned())
        .collect()
}

/// The words of a query, without those in quotes.
fn words(query: &str) -> impl Iterator<Item = &str> {
    let unquoted = query.split('"').step_by(2);
    unquoted
        .flat_map(|part| part.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')))
        .filter(|word| !word.is_empty())
}

/// The names of samples in a query.
fn samples(query: &str) -> impl Iterator<Item = &str> {
    words(query)
        .filter(|word| word.contains('_') && !word.starts_with('$') && !FUNCTIONS.contains(word))
}

/// The labels by which a query groups or selects.
fn labels(query: &str) -> Vec<&str> {
    let groups = query.split(" by (").skip(1).filter_map(|rest| rest.split(')').next());
    let grouped = groups.flat_map(|labels| labels.split(", "));
    let selectors = query.split('{').skip(1).filter_map(|rest| rest.split('}').next());
    let selected = selectors
        .flat_map(|selector| selector.split(','))
        .filter_map(|pair| Some(pair.split_once('=')?.0.trim()));
    grouped.chain(selected).collect()
}

fn check(query: &str, scrape: &Exposition) -> BTreeSet<String> {
    let names: BTreeSet<_> = scrape.series.keys().filter_map(|key| key.split('{').next()).collect();
    let found: BTreeSet<String> = samples(query).map(str::to_owned).collect();
    assert!(!found.is_empty(), "{query} has no metric");
    for name in &found {
        assert!(names.contains(name.as_str()), "{query}: there is no {name}");
        let of_name = scrape.label_sets(&family(name, scrape));
        for label in labels(query) {
            let known = of_name.iter().flatten().any(|known| known == label);
            assert!(known || ADDED_LABELS.contains(&label), "{query}: {name} has no {label}");
        }
    }
    found
}

/// The metric that a sample belongs to.
fn family(sample: &str, scrape: &Exposition) -> String {
    let suffixes = ["", "_total", "_bucket", "_sum", "_count"];
    let mut names = suffixes.iter().filter_map(|suffix| sample.strip_suffix(suffix));
    names.find(|name| scrape.types.contains_key(*name)).expect("it has a metric").to_owned()
}

#[tokio::test(start_paused = true)]
async fn every_metric_has_a_panel_and_every_query_has_metrics() {
    let scrape = whole_scrape().await;
    let queries: Vec<_> = panels().iter().flat_map(queries).collect();
    let used = queries.iter().flat_map(|query| check(query, &scrape));
    let used: BTreeSet<_> = used.map(|sample| family(&sample, &scrape)).collect();
    let unused: Vec<_> = scrape.types.keys().filter(|name| !used.contains(*name)).collect();
    assert!(unused.is_empty(), "in no panel: {unused:?}");
    let dashboard: Value = serde_json::from_str(DASHBOARD).expect("it is JSON");
    for variable in dashboard["templating"]["list"].as_array().expect("there are variables") {
        if let Some(definition) = variable["definition"].as_str() {
            check(definition, &scrape);
        }
    }
}

#[test]
fn panels_are_told_apart_and_explained() {
    let (mut ids, mut places) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels() {
        let title = panel["title"].as_str().expect("a panel has a title");
        assert!(ids.insert(panel["id"].as_u64()), "{title}: the id is taken");
        let place = &panel["gridPos"];
        let place = [&place["x"], &place["y"]].map(|it| it.as_u64().expect("it has a place"));
        assert!(places.insert(place), "{title}: the place is taken");
        assert!(panel["description"].as_str().is_some_and(|text| text.len() > 10), "{title}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}", "{title}");
        for query in queries(&panel) {
            let selects = query.matches("job=~\"$job\",instance=~\"$instance\"").count();
            assert_eq!(selects, samples(&query).count(), "{title} ignores the selection: {query}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn alerts_use_metrics_that_exist_and_are_explained() {
    let scrape = whole_scrape().await;
    let mut alerts = BTreeSet::new();
    for rule in rules() {
        let alert = rule["alert"].as_str().expect("a rule has a name").to_owned();
        check(rule["expr"].as_str().expect("a rule has an expression"), &scrape);
        assert!(
            matches!(rule["labels"]["severity"].as_str(), Some("warning" | "critical")),
            "{alert}"
        );
        for annotation in ["summary", "description"] {
            assert!(rule["annotations"][annotation].is_string(), "{alert} has no {annotation}");
        }
        let runbook = format!("docs/monitoring.md#{}", alert.to_lowercase());
        assert_eq!(rule["annotations"]["runbook"].as_str(), Some(&*runbook), "{alert}");
        assert!(alerts.insert(alert), "{rule} is there twice");
    }
    let explained = GUIDE.lines().filter_map(|line| line.strip_prefix("### "));
    assert_eq!(alerts, explained.map(str::to_owned).collect());
}
