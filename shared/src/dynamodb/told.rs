//! The facts of an order, and its entries in the log, as JSON texts.
//!
//! A text is one attribute where maps in lists are dozens: it costs a fraction of the work to sign, send, store
//! and read, and nothing ever asks the database for a part of it. Facts are arrays and not objects, because an
//! order with the facts of its sale should stay within one write unit.

use std::num::NonZeroU32;

use aws_sdk_dynamodb::types::AttributeValue;
use serde::{Deserialize, Serialize};

use engine::domain::basics::ids::{PaymentId, ProviderId};
use engine::domain::basics::money::{Currency, MinorUnits, Money};
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::inventory::HeldLine;
use engine::domain::ledger::log::Told;
use engine::domain::ledger::{Account, Transfer, TransferCode};
use engine::domain::order::fact::{Actor, Cause, Fact, FactKind, Moved};
use engine::domain::order::order_refund::RefundNumber;
use engine::domain::order::{PaymentKey, RefundReason};

/// A fact as it is written: kind, time in milliseconds, who caused it, and what moved.
type WrittenFact = (FactKind, i64, Actor, Option<WrittenMoney>);
/// Money that moved: the payment's provider and id, amount and currency, why it goes back, and by which refund.
type WrittenMoney =
    (ProviderId, PaymentId, MinorUnits, Currency, Option<RefundReason>, Option<RefundNumber>);

/// What the log tells of one order.
#[derive(Serialize, Deserialize)]
struct WrittenOrder {
    order: OrderNumber,
    total: Money,
    lines: Vec<HeldLine>,
    /// For each refund that is told, the seats of its tickets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    returned: Vec<(RefundNumber, Vec<HeldLine>)>,
    /// Each fact behind its number within the order.
    facts: Vec<(NonZeroU32, WrittenFact)>,
}

fn written(fact: &Fact) -> WrittenFact {
    let Fact { kind, at, cause: Cause { by, moved } } = fact;
    let money = |moved: &Moved| {
        let Moved { payment: PaymentKey { provider, payment }, amount, reason, refund } = moved;
        let Money { amount_minor, currency } = *amount;
        (provider.clone(), payment.clone(), amount_minor, currency, *reason, *refund)
    };
    (*kind, at.ms(), *by, moved.as_ref().map(money))
}

fn read((kind, at_ms, by, money): WrittenFact) -> Fact {
    let moved = |(provider, payment, amount_minor, currency, reason, refund): WrittenMoney| Moved {
        payment: PaymentKey { provider, payment },
        amount: Money { amount_minor, currency },
        reason,
        refund,
    };
    Fact { kind, at: Timestamp::from_ms(at_ms), cause: Cause { by, moved: money.map(moved) } }
}

/// A value as a JSON text.
#[allow(clippy::expect_used, reason = "only a key that is no text could not be written")]
pub(super) fn text_of(written: &impl Serialize) -> AttributeValue {
    AttributeValue::S(serde_json::to_string(written).expect("keys are texts"))
}

/// A fact as a value of an order's list.
pub(super) fn fact_value(fact: &Fact) -> AttributeValue {
    text_of(&written(fact))
}

/// Reads a fact of an order's list.
pub(super) fn read_fact(text: &str) -> serde_json::Result<Fact> {
    serde_json::from_str(text).map(read)
}

/// What a record of the log tells, as a value.
pub(super) fn told_value(told: &[Told]) -> AttributeValue {
    let of_order = |told: &Told| WrittenOrder {
        order: told.order,
        total: told.total,
        lines: told.lines.clone(),
        returned: told.returned.clone().into_iter().collect(),
        facts: told.facts.iter().map(|(number, fact)| (*number, written(fact))).collect(),
    };
    text_of(&told.iter().map(of_order).collect::<Vec<_>>())
}

/// Reads what a record of the log tells.
pub(super) fn read_told(text: &str) -> serde_json::Result<Vec<Told>> {
    let orders: Vec<WrittenOrder> = serde_json::from_str(text)?;
    let of_order = |written: WrittenOrder| Told {
        order: written.order,
        total: written.total,
        lines: written.lines,
        returned: written.returned.into_iter().collect(),
        facts: written.facts.into_iter().map(|(number, fact)| (number, read(fact))).collect(),
    };
    Ok(orders.into_iter().map(of_order).collect())
}

/// A transfer as it is written: from, to, what for, amount and currency.
type WrittenTransfer = (Account, Account, TransferCode, MinorUnits, Currency);

/// The transfers of a record of the log, as a value.
pub(super) fn transfers_value(transfers: &[Transfer]) -> AttributeValue {
    let written = |transfer: &Transfer| -> WrittenTransfer {
        let Transfer { from, to, code, amount: Money { amount_minor, currency } } = transfer;
        (from.clone(), to.clone(), *code, *amount_minor, *currency)
    };
    text_of(&transfers.iter().map(written).collect::<Vec<_>>())
}

/// Reads the transfers of a record of the log.
pub(super) fn read_transfers(text: &str) -> serde_json::Result<Vec<Transfer>> {
    let written: Vec<WrittenTransfer> = serde_json::from_str(text)?;
    let transfer = |(from, to, code, amount_minor, currency): WrittenTransfer| {
        let amount = Money { amount_minor, currency };
        Transfer { from, to, code, amount }
    };
    Ok(written.into_iter().map(transfer).collect())
}

#[cfg(test)]
mod tests {
    use engine::domain::order::dispute::Dispute;

    use super::*;

    #[test]
    fn transfers_are_read_as_they_were_written() {
        let text = r#"[["provider:stripe","merchant:opera:carmen","sale",9650,"CNY"],["fees","owed","commission_back",1,"CNY"]]"#;
        let transfers = read_transfers(text).unwrap();
        assert_eq!(transfers_value(&transfers), AttributeValue::S(text.to_owned()));
        for broken in ["[]]", r#"[["fees","owed","sale",1]]"#, r#"[["fee","owed","sale",1,"CNY"]]"#]
        {
            assert!(read_transfers(broken).is_err(), "{broken}");
        }
    }

    #[test]
    fn disputes_are_read_as_they_were_written() {
        let text = r#"[{"id":"dp_1","state":"open","amount_minor":700,"opened_at":"2027-01-15T08:00:00.000Z","changed_at":"2027-01-15T08:00:00.000Z"}]"#;
        let disputes: Vec<Dispute> = serde_json::from_str(text).unwrap();
        assert_eq!(text_of(&disputes), AttributeValue::S(text.to_owned()));
        assert!(serde_json::from_str::<Vec<Dispute>>("[{}]").is_err());
    }

    #[test]
    fn a_fact_is_a_short_text_and_is_read_as_it_was() {
        let at = Timestamp::from_ms(1_800_000_000_000);
        let payment =
            PaymentKey { provider: "stripe".parse().unwrap(), payment: "pi_1".parse().unwrap() };
        let currency = Currency::new("CNY").unwrap();
        let amount = Money { amount_minor: MinorUnits(12_000), currency };
        let moved =
            |reason, refund| Some(Moved { payment: payment.clone(), amount, reason, refund });
        let fact = |kind, by, moved| Fact { kind, at, cause: Cause { by, moved } };
        let cases = [
            (fact(FactKind::Made, Actor::Buyer, None), r#"["made",1800000000000,"buyer",null]"#),
            (
                fact(FactKind::Paid, Actor::Provider, moved(None, None)),
                r#"["paid",1800000000000,"provider",["stripe","pi_1",12000,"CNY",null,null]]"#,
            ),
            (
                fact(
                    FactKind::RefundMade,
                    Actor::Operator,
                    moved(Some(RefundReason::Returned), Some(RefundNumber::FIRST)),
                ),
                r#"["refund_made",1800000000000,"operator",["stripe","pi_1",12000,"CNY","returned",1]]"#,
            ),
        ];
        for (fact, text) in cases {
            assert_eq!(fact_value(&fact), AttributeValue::S(text.to_owned()));
            assert_eq!(read_fact(text).unwrap(), fact);
        }
    }
}
