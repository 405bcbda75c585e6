//! The number under which WeChat Pay and Alipay know an attempt: `<deployment>-<order>-<attempt>`, with the separator
//! that the provider allows.
//!
//! Attempts that were started before payments carried a deployment have `<order>-<attempt>`. The number is the only
//! thing that a merchant's other systems, its bills and its refunds share with us, so that it says whose a payment is.

use engine::domain::basics::ids::DeploymentId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::order::attempt::{Attempt, AttemptKey};
use engine::domain::payment::ours::Mark;

/// The longest trade number of WeChat Pay, the shorter of both.
/// Source: <https://pay.weixin.qq.com/doc/v3/merchant/4012791877>
const MAX_BYTES: usize = 32;
/// The most digits of an order's number, which is less than 2^63.
const ORDER_DIGITS: usize = 19;
const _: () = assert!(DeploymentId::MAX_BYTES + 1 + ORDER_DIGITS + 1 + 2 <= MAX_BYTES);

/// The number of an attempt: the one that was given to the provider, if that is known.
pub(super) fn of_attempt(order: OrderNumber, attempt: &Attempt, separator: char) -> String {
    if let Some(reference) = &attempt.reference {
        return reference.to_string();
    }
    let number = attempt.number;
    match &attempt.deployment {
        Some(deployment) => format!("{deployment}{separator}{order}{separator}{number}"),
        None => format!("{order}{separator}{number}"),
    }
}

/// The attempt that a trade number names, and what it says of who started it, read by the deployment `own`; `None` if it
/// names no attempt, as those of other systems do.
pub(super) fn read(
    text: &str,
    separator: char,
    own: Option<&DeploymentId>,
) -> Option<(AttemptKey, Mark)> {
    let parts: Vec<&str> = text.split(separator).collect();
    let (deployment, order, number) = match parts[..] {
        [order, number] => (None, order, number),
        [deployment, order, number] => (Some(deployment), order, number),
        _ => return None,
    };
    let key = format!("{order}-{number}").parse().ok()?;
    Some((key, Mark::of(deployment, own)))
}

/// True for what the name of a further try ends with: `-2` of the second.
pub(super) fn is_further_try(end: &str, dash: char) -> bool {
    let number = end.strip_prefix(dash).and_then(|number| number.parse::<u16>().ok());
    number.is_some_and(|number| (2..=u16::from(u8::MAX) + 1).contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::providers::fake::{attempt, order, yuan};
    use engine::domain::order::attempt::PaymentMethod;

    #[test]
    fn a_number_names_the_deployment_and_what_others_number_is_not_ours() {
        let own = DeploymentId::new("prod12345").unwrap();
        let order = order(yuan(1)).number;
        let earlier = attempt(PaymentMethod::Code, 900);
        let now = Attempt { deployment: Some(own.clone()), ..earlier.clone() };
        for separator in ['-', '_'] {
            let read = |text: &str, own: Option<&DeploymentId>| read(text, separator, own);
            let key = now.key(order);
            let text = of_attempt(order, &now, separator);
            assert!(text.len() <= MAX_BYTES, "{text}");
            assert_eq!(read(&text, Some(&own)), Some((key, Mark::Ours)));
            assert_eq!(read(&text, None), Some((key, Mark::Another)));
            assert_eq!(read(&text.replace("prod", "test"), Some(&own)), Some((key, Mark::Another)));
            let text = of_attempt(order, &earlier, separator);
            assert_eq!(read(&text, Some(&own)), Some((key, Mark::None)));
            let kept = Attempt { reference: text.parse().ok(), ..now.clone() };
            assert_eq!(of_attempt(order, &kept, separator), text, "never computed again");
            for foreign in
                ["", "SHOP", "SHOP-20270115-1-2", "prod12345--1", "prod12345-x-1", "7-01", "7-0"]
            {
                let foreign = foreign.replace('-', &separator.to_string());
                assert_eq!(read(&foreign, Some(&own)), None, "{foreign}");
            }
        }
    }
}
