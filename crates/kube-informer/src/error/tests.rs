use std::io;

use super::*;

type Predicate = fn(&Error) -> bool;

/// The predicate of a cause, and the cause after it. Without a wildcard arm, a cause that is added
/// does not compile until it has a predicate.
fn predicate(cause: &Cause) -> (Predicate, Option<Cause>) {
    match cause {
        Cause::Api { .. } => (Error::is_api, Some(Cause::Refused)),
        Cause::Refused => (Error::is_connection_refused, Some(Cause::Broken)),
        Cause::Broken => (Error::is_connection_broken, Some(Cause::Timeout)),
        Cause::Timeout => (Error::is_timeout, Some(Cause::Silence)),
        Cause::Silence => (Error::is_silence, Some(Cause::Protocol)),
        Cause::Protocol => (Error::is_protocol, Some(Cause::Regressed)),
        Cause::Regressed => (Error::is_regressed, Some(Cause::Conflict)),
        Cause::Conflict => (Error::is_conflict, Some(Cause::Decode { key: None })),
        Cause::Decode { .. } => (Error::is_decode, Some(Cause::Unreadable { key: None })),
        Cause::Unreadable { .. } => (Error::is_unreadable, Some(Cause::Store)),
        Cause::Store => (Error::is_store, Some(Cause::Snapshot)),
        Cause::Snapshot => (Error::is_snapshot, Some(Cause::UnknownIndex)),
        Cause::UnknownIndex => (Error::is_unknown_index, Some(Cause::IndexConflict)),
        Cause::IndexConflict => (Error::is_index_conflict, Some(Cause::IncomparableVersion)),
        Cause::IncomparableVersion => (Error::is_incomparable_version, Some(Cause::Stopped)),
        Cause::Stopped => (Error::is_stopped, Some(Cause::Invalid)),
        Cause::Invalid => (Error::is_invalid, None),
    }
}

fn api(code: u16) -> Cause {
    let status = Status { code, ..Status::default() };
    Cause::Api { status: Box::new(status), retry_after: None, in_stream: false }
}

#[test]
fn every_cause_has_one_predicate() {
    let causes: Vec<Cause> = std::iter::successors(Some(api(500)), |c| predicate(c).1).collect();
    let errors: Vec<Error> = causes.iter().map(|cause| Error::new(cause.clone(), "")).collect();
    for (n, cause) in causes.iter().enumerate() {
        let is = predicate(cause).0;
        let found: Vec<usize> = (0..errors.len()).filter(|&other| is(&errors[other])).collect();
        assert_eq!(found, [n], "{cause:?}");
    }
}

#[test]
fn status_codes_have_distinct_predicates() {
    let predicates: [(u16, Predicate); 6] = [
        (401, Error::is_unauthorized),
        (403, Error::is_forbidden),
        (404, Error::is_not_found),
        (409, Error::is_conflict),
        (410, Error::is_expired),
        (429, Error::is_too_many_requests),
    ];
    for (code, _) in predicates {
        let error = Error::new(api(code), "");
        let found: Vec<u16> =
            predicates.iter().filter(|(_, is)| is(&error)).map(|(code, _)| *code).collect();
        assert_eq!((found, error.is_api()), (vec![code], true));
    }
}

#[test]
fn already_exists_is_not_a_conflict() {
    let status = Status { code: 409, reason: "AlreadyExists".to_owned(), ..Status::default() };
    let error = Error::from_status(status, false);
    assert!(error.is_already_exists() && !error.is_conflict());
    assert!(!Error::new(api(409), "").is_already_exists());
}

#[test]
fn an_error_within_another_step_keeps_its_cause_and_source() {
    let inner = Error::connection("it broke").caused_by(io::Error::from(io::ErrorKind::BrokenPipe));
    let outer = inner.within("the status cannot be written");
    assert_eq!(outer.to_string(), "the status cannot be written: it broke");
    assert!(outer.is_connection_broken() && outer.source().is_some());
}

#[test]
fn an_error_returns_its_source() {
    let plain = Error::connection("reset");
    assert!(plain.source().is_none());
    let error = plain.clone().caused_by(io::Error::from(io::ErrorKind::ConnectionReset));
    let kind = |error: &Error| Some(error.source()?.downcast_ref::<io::Error>()?.kind());
    assert_eq!(kind(&error), Some(io::ErrorKind::ConnectionReset));
    // Neither text nor cause change with it.
    assert!(error == plain && error.is_connection_broken());
    assert_eq!(kind(&Error::invalid("other").caused_as(&error)), kind(&error));
    assert_eq!(kind(&error.clone()), kind(&error));
}
