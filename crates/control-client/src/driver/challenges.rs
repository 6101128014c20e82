//! Challenges of certificate authorities that the node answers.

use super::Client;
use crate::channel::ChannelError;
use crate::host::Host;
use crate::state::Identity;
use control_wire::{ChallengesRequest, HttpChallenge};

impl Client {
    /// From now on answers exactly these challenges, and confirms that. The control plane requests
    /// the validation after all nodes have confirmed; a failed confirmation is repeated by the next
    /// poll.
    pub(super) async fn answer_challenges(
        &mut self,
        own: &Identity,
        challenges: &[HttpChallenge],
        host: &mut impl Host,
    ) -> Result<(), ChannelError> {
        if self.challenges == challenges {
            return Ok(());
        }
        host.answer_challenges(challenges);
        if !challenges.is_empty() {
            let tokens = challenges.iter().map(|challenge| challenge.token.clone());
            let body = ChallengesRequest {
                tokens: tokens.collect(),
            };
            self.channel.confirm_challenges(own, &body).await?;
        }
        self.challenges = challenges.to_vec();
        Ok(())
    }
}
