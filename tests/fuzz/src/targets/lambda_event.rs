//! What Lambda hands to a function, as JSON: a request of API Gateway's, or a batch of SQS's.

use aws_lambda_events::event::sqs::SqsEvent;

use super::{queue_message, request};
use crate::request::received;
use crate::{Outcome, Target};

pub(crate) const LAMBDA_EVENT: Target = Target {
    name: "lambda-event",
    about: "An event of Lambda's as JSON: a request, answered as its function does, or a batch of \
            messages, of which none is lost.",
    run,
};

fn run(input: &[u8]) -> Outcome {
    let Ok(text) = std::str::from_utf8(input) else { return Outcome::Refused };
    let request = received(text);
    let answered = request.map_or(Outcome::Refused, |request| request::respond(&request));
    let batch: Option<SqsEvent> = serde_json::from_str(text).ok();
    let read = batch.map_or(Outcome::Refused, queue_message::batches);
    Outcome::from_accepted(answered == Outcome::Accepted || read == Outcome::Accepted)
}
