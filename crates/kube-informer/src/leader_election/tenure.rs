//! The task of a candidate: acquires the lease, renews it as long as it can, and releases it in the end.

use std::sync::Arc;

use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

use super::Inner;
use super::campaign::{Attempt, Campaign, is_conflict};
use super::leadership::{Ending, Leadership, Term};
use super::settings::Settings;
use crate::{Error, Result};

/// Runs until leadership is lost, or until `ending` receives a value or its sender is dropped; then the lease
/// is released if that is wanted. The error is that of the release.
pub(super) async fn tenure(
    elector: Arc<Inner>,
    won: oneshot::Sender<Leadership>,
    mut ending: oneshot::Receiver<Ending>,
) -> Result<()> {
    // Users of the same elector take turns: each is a candidate only when the previous one has finished.
    let turn = elector.campaign.clone().lock_owned();
    let mut campaign = tokio::select! {
        biased;
        _ = &mut ending => return Ok(()),
        campaign = turn => campaign,
    };
    let mut tenure =
        Tenure { elector: &elector, campaign: &mut campaign, trouble: Trouble::default() };
    let Some(term) = tenure.win(&mut ending).await else {
        return tenure.withdraw().await;
    };
    // If the caller has gone in the meantime, `ending` reports it.
    let _ = won.send(Leadership(term.clone()));
    match tenure.lead(&term, &mut ending).await {
        Some(ending) => {
            // There was no guard if the caller has gone before the lease was won.
            term.let_go();
            tenure.stop(ending).await
        }
        None => Ok(()),
    }
}

struct Tenure<'a> {
    elector: &'a Inner,
    campaign: &'a mut Campaign,
    trouble: Trouble,
}

impl Tenure<'_> {
    /// Makes attempts until the lease is won; `None` if the candidate is told to end first.
    ///
    /// A request is never abandoned: if it wins the lease after all, the lease has to be released.
    async fn win(&mut self, ending: &mut oneshot::Receiver<Ending>) -> Option<Arc<Term>> {
        let settings = self.settings();
        tracing::debug!(lease = %settings.lease, identity = %settings.identity, "became a candidate");
        loop {
            match self.campaign.attempt(false).await {
                Ok(Attempt::Won { started }) => {
                    self.trouble.over(&settings.lease);
                    let transitions = self.campaign.transitions();
                    let term = Arc::new(Term::new(started, settings.renew_deadline, transitions));
                    // False if the process was paused before it saw the response.
                    if term.is_leader() {
                        self.elector.shared.began(term.clone());
                        tracing::info!(lease = %settings.lease, identity = %settings.identity, "leads");
                        return Some(term);
                    }
                    continue;
                }
                // Losing a race is not an error.
                Err(error) if !is_conflict(&error) => self.failed(&error, "acquire"),
                Ok(Attempt::Held) | Err(_) => {
                    self.trouble.over(&settings.lease);
                }
            }
            tokio::select! {
                biased;
                _ = &mut *ending => return None,
                () = sleep(self.campaign.pause()) => {}
            }
        }
    }

    /// Renews until no renewal succeeds in time (`None`), or until told to end.
    async fn lead(
        &mut self,
        term: &Term,
        ending: &mut oneshot::Receiver<Ending>,
    ) -> Option<Ending> {
        let settings = self.settings();
        let mut attempted = term.renewed();
        loop {
            tokio::select! {
                biased;
                ending = &mut *ending => return Some(ending.unwrap_or(Ending::Stop)),
                () = term.lost() => return self.ended(term, ending).await,
                () = sleep_until(attempted + settings.retry_period) => {}
            }
            attempted = Instant::now();
            let attempt = tokio::select! {
                biased;
                ending = &mut *ending => return Some(ending.unwrap_or(Ending::Stop)),
                () = term.lost() => return self.ended(term, ending).await,
                attempt = self.campaign.attempt(true) => attempt,
            };
            match attempt {
                Ok(Attempt::Won { started }) if term.renew(started) => {
                    self.trouble.over(&settings.lease);
                }
                Ok(Attempt::Won { .. }) => return self.lost(term, "it was renewed too late"),
                Ok(Attempt::Held) => return self.lost(term, "the lease is not ours any more"),
                Err(error) => self.failed(&error, "renew"),
            }
        }
    }

    /// Ends a term: the guard was dropped and `ending` is about to say how, or there was no renewal in time.
    async fn ended(
        &mut self,
        term: &Term,
        ending: &mut oneshot::Receiver<Ending>,
    ) -> Option<Ending> {
        if !term.is_held() {
            return Some(ending.await.unwrap_or(Ending::Stop));
        }
        self.lost(term, "it could not be renewed in time")
    }

    fn lost(&mut self, term: &Term, why: &str) -> Option<Ending> {
        term.lose();
        let settings = self.settings();
        tracing::warn!(lease = %settings.lease, identity = %settings.identity, "lost leadership: {why}");
        None
    }

    /// Ends a candidate that has not won, as far as it knows.
    async fn withdraw(&mut self) -> Result<()> {
        if !self.campaign.may_hold() {
            return Ok(());
        }
        self.stop(Ending::Stop).await
    }

    async fn stop(&mut self, ending: Ending) -> Result<()> {
        let settings = self.settings();
        if ending == Ending::Stop && !settings.release_on_stop {
            tracing::info!(lease = %settings.lease, "stopped without releasing the lease, which will expire");
            return Ok(());
        }
        let released = self.campaign.release().await;
        match &released {
            Ok(()) => tracing::info!(lease = %settings.lease, "released the lease"),
            Err(error) => {
                self.elector.shared.failed(error);
                tracing::warn!(lease = %settings.lease, "could not release the lease, which will expire: {error}");
            }
        }
        released
    }

    fn failed(&mut self, error: &Error, verb: &str) {
        self.elector.shared.failed(error);
        self.trouble.failed(&self.elector.settings.lease, verb, error);
    }

    fn settings(&self) -> Arc<Settings> {
        self.elector.settings.clone()
    }
}

/// The last logged error that persists: each error is logged when it starts, when it changes and when it
/// clears, not with each retry.
#[derive(Default)]
struct Trouble(Option<String>);

impl Trouble {
    /// Returns whether it was logged.
    fn failed(&mut self, lease: &str, verb: &str, error: &Error) -> bool {
        let text = error.to_string();
        let new = self.0.as_ref() != Some(&text);
        if new {
            tracing::warn!(%lease, "cannot {verb} the lease, retrying: {error}");
            self.0 = Some(text);
        }
        new
    }

    /// Returns whether there was anything to recover from.
    fn over(&mut self, lease: &str) -> bool {
        let before = self.0.take();
        if let Some(text) = &before {
            tracing::info!(%lease, "recovered from: {text}");
        }
        before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_logged_when_they_begin_change_and_end() {
        let (reset, refused) = (Error::connection("reset"), Error::connection("refused"));
        let mut trouble = Trouble::default();
        assert!(!trouble.over("default/a"));
        assert!(trouble.failed("default/a", "renew", &reset));
        assert!(!trouble.failed("default/a", "renew", &reset));
        assert!(trouble.failed("default/a", "renew", &refused));
        assert!(trouble.over("default/a"));
        assert!(!trouble.over("default/a"));
        assert!(trouble.failed("default/a", "renew", &refused));
    }
}
