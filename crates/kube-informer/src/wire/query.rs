//! Query strings. kube's own drop `resourceVersion=0` if there is a limit, which turns a list from the
//! server's cache into one from etcd.

use std::time::Duration;

use form_urlencoded::Serializer;

use super::Target;

/// The parameters of a LIST.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ListQuery<'a> {
    /// Empty for the most recent version, `0` for any, and otherwise for this version or a newer one.
    pub(crate) resource_version: &'a str,
    /// The page size; 0 for everything at once.
    pub(crate) limit: u32,
    /// The token from the previous page; empty for the first.
    pub(crate) continue_token: &'a str,
}

/// The parameters of a WATCH.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct WatchQuery<'a> {
    pub(crate) resource_version: &'a str,
    pub(crate) send_initial_events: bool,
    pub(crate) timeout: Option<Duration>,
}

impl ListQuery<'_> {
    pub(crate) fn text(&self, target: &Target) -> String {
        let mut query = selectors(target);
        if self.limit > 0 {
            query.append_pair("limit", &self.limit.to_string());
        }
        // The token includes the version, and servers reject both together.
        if !self.continue_token.is_empty() {
            query.append_pair("continue", self.continue_token);
            return query.finish();
        }
        match self.resource_version {
            "" => {}
            // Without a match this means "any", which the server answers from its cache.
            "0" => {
                query.append_pair("resourceVersion", "0");
            }
            // With a limit and without a match, this would mean exactly that version.
            version => {
                query.append_pair("resourceVersion", version);
                query.append_pair("resourceVersionMatch", "NotOlderThan");
            }
        }
        query.finish()
    }
}

impl WatchQuery<'_> {
    pub(crate) fn text(&self, target: &Target) -> String {
        let mut query = selectors(target);
        query.append_pair("watch", "true");
        query.append_pair("allowWatchBookmarks", "true");
        if !self.resource_version.is_empty() {
            query.append_pair("resourceVersion", self.resource_version);
        }
        if self.send_initial_events {
            query.append_pair("sendInitialEvents", "true");
            query.append_pair("resourceVersionMatch", "NotOlderThan");
        }
        if let Some(timeout) = self.timeout {
            // Zero would let the server choose.
            query.append_pair("timeoutSeconds", &timeout.as_secs().max(1).to_string());
        }
        query.finish()
    }
}

fn selectors(target: &Target) -> Serializer<'static, String> {
    let mut query = Serializer::new(String::new());
    if !target.labels.is_empty() {
        query.append_pair("labelSelector", &target.labels);
    }
    if !target.fields.is_empty() {
        query.append_pair("fieldSelector", &target.fields);
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(query: ListQuery<'_>) -> String {
        query.text(&Target::default())
    }
    fn watch(query: WatchQuery<'_>) -> String {
        query.text(&Target::default())
    }

    #[test]
    fn r22_a_list_of_any_version_can_be_paged() {
        assert_eq!(list(ListQuery::default()), "");
        let any = ListQuery { resource_version: "0", limit: 500, ..ListQuery::default() };
        assert_eq!(list(any), "limit=500&resourceVersion=0");
    }

    #[test]
    fn r21_a_list_of_a_version_means_that_or_newer() {
        let query = ListQuery { resource_version: "7", ..ListQuery::default() };
        assert_eq!(list(query), "resourceVersion=7&resourceVersionMatch=NotOlderThan");
        let paged = ListQuery { limit: 5, ..query };
        assert_eq!(list(paged), "limit=5&resourceVersion=7&resourceVersionMatch=NotOlderThan");
    }

    #[test]
    fn r23_a_page_after_the_first_has_the_token_and_no_version() {
        let query = ListQuery { resource_version: "7", limit: 2, continue_token: "a=b/c&d" };
        assert_eq!(list(query), "limit=2&continue=a%3Db%2Fc%26d");
    }

    #[test]
    fn r40_a_watch_asks_for_bookmarks_and_no_initial_events() {
        let query = WatchQuery {
            resource_version: "7",
            timeout: Some(Duration::from_millis(300_900)),
            ..WatchQuery::default()
        };
        assert_eq!(
            watch(query),
            "watch=true&allowWatchBookmarks=true&resourceVersion=7&timeoutSeconds=300"
        );
        let short = WatchQuery { timeout: Some(Duration::from_millis(1)), ..WatchQuery::default() };
        assert_eq!(watch(short), "watch=true&allowWatchBookmarks=true&timeoutSeconds=1");
    }

    #[test]
    fn w1_a_streaming_list_asks_for_initial_events_not_older_than_its_version() {
        let query = WatchQuery { send_initial_events: true, ..WatchQuery::default() };
        let end = "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan";
        assert_eq!(watch(query), format!("watch=true&allowWatchBookmarks=true{end}"));
        let later = WatchQuery { resource_version: "9", ..query };
        let begin = "watch=true&allowWatchBookmarks=true&resourceVersion=9";
        assert_eq!(watch(later), format!("{begin}{end}"));
    }

    #[test]
    fn selectors_are_escaped() {
        let target = Target {
            labels: "app in (a,b),x!=y&watch=true".into(),
            fields: "metadata.name=ü#".into(),
            ..Target::default()
        };
        let expected = "labelSelector=app+in+%28a%2Cb%29%2Cx%21%3Dy%26watch%3Dtrue&\
                        fieldSelector=metadata.name%3D%C3%BC%23";
        assert_eq!(ListQuery::default().text(&target), expected);
        assert!(WatchQuery::default().text(&target).starts_with(expected));
    }
}
