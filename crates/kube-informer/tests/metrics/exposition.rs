//! A parser of the `OpenMetrics` text format that is strict about what scrapers are strict about.

use std::collections::{BTreeMap, BTreeSet};

/// The content of a scrape.
pub(crate) struct Exposition {
    /// The type of each metric.
    pub(crate) types: BTreeMap<String, String>,
    /// The values of each series, by name and labels as they are written.
    pub(crate) series: BTreeMap<String, f64>,
}

impl Exposition {
    pub(crate) fn parse(text: &str) -> Self {
        let (mut types, mut series) = (BTreeMap::new(), BTreeMap::new());
        let body = text.strip_suffix("# EOF\n").expect("it ends with EOF");
        let mut current = String::new();
        for line in body.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a type");
                let before = types.insert(name.to_owned(), kind.to_owned());
                assert_eq!(before, None, "{name} is described twice");
                name.clone_into(&mut current);
            } else if !line.starts_with("# HELP ") {
                let (name, value) = line.rsplit_once(' ').expect("a series and its value");
                assert!(name.starts_with(&current), "{line} is not part of {current}");
                let value = value.parse().expect("a number");
                assert_eq!(series.insert(name.to_owned(), value), None, "{name} comes twice");
            }
        }
        Self { types, series }
    }

    /// The value of a series; a panic says what there is instead.
    pub(crate) fn value(&self, name: &str) -> f64 {
        let metric = name.split('{').next().unwrap_or_default();
        let near = || self.series.keys().filter(|key| key.starts_with(metric)).collect::<Vec<_>>();
        *self.series.get(name).unwrap_or_else(|| panic!("no {name}, but {:?}", near()))
    }

    /// Whether any series has this label.
    pub(crate) fn mentions(&self, label: &str) -> bool {
        self.series.keys().any(|key| key.contains(label))
    }

    /// The names of the labels of a metric's series, without those of buckets.
    pub(crate) fn labels(&self, metric: &str) -> BTreeSet<String> {
        self.label_sets(metric).into_iter().flatten().collect()
    }

    /// The different sets of labels that the samples of a metric have, each sorted.
    pub(crate) fn label_sets(&self, metric: &str) -> BTreeSet<Vec<String>> {
        let of_metric = self.series.keys().filter_map(|key| key.split_once('{'));
        let of_metric = of_metric.filter(|(name, _)| *name == metric || base(name) == metric);
        of_metric
            .map(|(_, labels)| {
                let pairs = labels.split("\",").filter_map(|pair| pair.split_once("=\""));
                let mut names: Vec<_> = pairs.map(|(name, _)| name.to_owned()).collect();
                names.retain(|name| name != "le");
                names.sort();
                names
            })
            .collect()
    }

    /// The bounds of a histogram's buckets, except the last, which is infinite.
    pub(crate) fn bounds(&self, metric: &str) -> Vec<f64> {
        let prefix = format!("{metric}_bucket{{");
        let buckets = self.series.keys().filter(|key| key.starts_with(&prefix));
        let bounds = buckets.filter_map(|key| key.split_once("le=\"")?.1.split('"').next());
        let mut bounds: Vec<f64> =
            bounds.filter(|bound| *bound != "+Inf").map(|bound| bound.parse().unwrap()).collect();
        bounds.sort_by(f64::total_cmp);
        bounds.dedup();
        bounds
    }
}

fn base(name: &str) -> &str {
    let suffixes = ["_total", "_sum", "_count", "_bucket"];
    suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name)
}
