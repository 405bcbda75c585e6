//! The ledger: whose money was moved, in double entry.
//!
//! What a fact of an order moves is a function of the order: transfers between accounts, each from one to
//! another, so that the sum of all balances is zero at any time. They are booked where facts are settled, in the
//! same transaction and so exactly once: the transfers of a batch stand in its record of the log, and the accounts
//! count them. An account has a part for each shard of the log, which only the batches of that shard write.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::domain::basics::ids::{InvalidId, MerchantId, ProviderId, SaleId};
use crate::domain::basics::money::{Currency, MinorUnits, Money};
use crate::domain::order::fact::{Actor, Fact, FactKind};
use crate::domain::order::refund::RefundState;
use crate::domain::order::{Capture, Order, PaymentOutcome, PaymentRecord, RefundReason};

/// An account: a balance in each currency.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Account {
    /// What a merchant is owed of one sale.
    Merchant(MerchantId, SaleId),
    /// What a provider has, with the opposite sign: it falls by what is captured and rises by what is sent back
    /// and paid out.
    Provider(ProviderId),
    Fees,
    /// What is owed to those who paid: captures that buy nothing, refunds until the money is back, and what tickets
    /// are worth that are exchanged, until it pays the order that replaces them.
    Owed,
    /// What the platform's bank has, with the opposite sign: it falls by what providers pay out and rises by what
    /// merchants are paid.
    Bank,
    /// What providers keep for their service, with the opposite sign.
    Costs,
    /// What is in dispute, with the opposite sign: a provider has taken it back, and whose it is, is not decided.
    Disputed,
    /// Captures of no order of which an operator has said what they were.
    Explained,
}

impl Account {
    /// True if its balance may be below nothing: it is what somebody else has of ours.
    #[must_use]
    pub const fn may_be_below_nothing(&self) -> bool {
        match self {
            Self::Provider(_) | Self::Bank | Self::Costs | Self::Disputed => true,
            Self::Merchant(..) | Self::Fees | Self::Owed | Self::Explained => false,
        }
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Merchant(merchant, sale) => write!(f, "merchant:{merchant}:{sale}"),
            Self::Provider(provider) => write!(f, "provider:{provider}"),
            Self::Fees => f.write_str("fees"),
            Self::Owed => f.write_str("owed"),
            Self::Bank => f.write_str("bank"),
            Self::Costs => f.write_str("costs"),
            Self::Disputed => f.write_str("disputed"),
            Self::Explained => f.write_str("explained"),
        }
    }
}

impl FromStr for Account {
    type Err = InvalidId;
    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = InvalidId { kind: "account", rule: "the name of an account" };
        match text.split_once(':') {
            None if text == "fees" => Ok(Self::Fees),
            None if text == "owed" => Ok(Self::Owed),
            None if text == "bank" => Ok(Self::Bank),
            None if text == "costs" => Ok(Self::Costs),
            None if text == "disputed" => Ok(Self::Disputed),
            None if text == "explained" => Ok(Self::Explained),
            Some(("provider", provider)) => ProviderId::new(provider).map(Self::Provider),
            Some(("merchant", rest)) => {
                let (merchant, sale) = rest.split_once(':').ok_or(invalid)?;
                Ok(Self::Merchant(MerchantId::new(merchant)?, SaleId::new(sale)?))
            }
            Some(_) | None => Err(invalid),
        }
    }
}

impl TryFrom<String> for Account {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        text.parse()
    }
}

impl From<Account> for String {
    fn from(account: Account) -> String {
        account.to_string()
    }
}

/// What a transfer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransferCode {
    /// What a paid order leaves its merchant, from the provider, or from what is owed for tickets that it replaces.
    Sale,
    /// The commission on it, from the same.
    Commission,
    /// A capture that buys nothing, from the provider to what is owed.
    Unowned,
    /// A capture of no order that an operator has explained, from what is owed.
    Explained,
    /// A refund of a paid order, from the merchant to what is owed.
    Refund,
    /// The commission on it, given up, from the fees to what is owed.
    CommissionBack,
    /// Money that is back, from what was owed to the provider.
    SentBack,
    /// Money that was back and is not after all, from the provider to what is owed, or from what is in dispute, if a lost
    /// dispute had taken it that is won.
    SentBackUndone,
    /// Money that is back by another way than its provider, as an operator says, from what was owed to the bank.
    PaidOtherwise,
    /// What a provider takes back because it is disputed, from what is in dispute to the provider.
    Disputed,
    /// The same when the dispute is over: won, the money is here again; lost, a refund follows.
    DisputeOver,
    /// What a provider keeps for its service, from the costs to the provider.
    ProviderFee,
    /// A fee that a provider gives back, from the provider to the costs.
    ProviderFeeBack,
    /// What a provider pays out, from the bank to the provider.
    Payout,
    /// A payout that came back, from the provider to the bank.
    PayoutBack,
    /// What a merchant is paid of its sale, from the merchant to the bank.
    Settlement,
    /// A settlement that came back, from the bank to the merchant.
    SettlementBack,
}

impl TransferCode {
    /// Every code, for tables and tests.
    pub const ALL: [Self; 17] = [
        Self::Sale,
        Self::Commission,
        Self::Unowned,
        Self::Explained,
        Self::Refund,
        Self::CommissionBack,
        Self::SentBack,
        Self::SentBackUndone,
        Self::PaidOtherwise,
        Self::Disputed,
        Self::DisputeOver,
        Self::ProviderFee,
        Self::ProviderFeeBack,
        Self::Payout,
        Self::PayoutBack,
        Self::Settlement,
        Self::SettlementBack,
    ];

    /// The code as it is written in JSON and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sale => "sale",
            Self::Commission => "commission",
            Self::Unowned => "unowned",
            Self::Explained => "explained",
            Self::Refund => "refund",
            Self::CommissionBack => "commission_back",
            Self::SentBack => "sent_back",
            Self::SentBackUndone => "sent_back_undone",
            Self::PaidOtherwise => "paid_otherwise",
            Self::Disputed => "disputed",
            Self::DisputeOver => "dispute_over",
            Self::ProviderFee => "provider_fee",
            Self::ProviderFeeBack => "provider_fee_back",
            Self::Payout => "payout",
            Self::PayoutBack => "payout_back",
            Self::Settlement => "settlement",
            Self::SettlementBack => "settlement_back",
        }
    }
}

/// Money that moves from one account to another. Never changed, and never of nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Transfer {
    /// The account whose balance falls.
    pub from: Account,
    /// The account whose balance rises.
    pub to: Account,
    pub code: TransferCode,
    /// How much; more than nothing.
    pub amount: Money,
}

/// The sum of some transfers by accounts, code and currency: one amount, or several where the sum exceeds an amount.
/// Only the provider bounds what is captured.
type Sums = BTreeMap<(Account, Account, TransferCode, Currency), Vec<MinorUnits>>;

/// The transfers of settling the unsettled facts of these orders: one for each pair of accounts, code and currency, or
/// more where the sum exceeds an amount.
#[must_use]
pub fn transfers<'a>(orders: impl IntoIterator<Item = &'a Order>) -> Vec<Transfer> {
    summed(orders, |order, number| number > order.facts.settled)
}

/// The transfers of the settled facts of these orders.
#[must_use]
pub fn booked<'a>(orders: impl IntoIterator<Item = &'a Order>) -> Vec<Transfer> {
    summed(orders, |order, number| number <= order.facts.settled)
}

/// The transfers so far of a capture without an order. No order has facts of the capture, so settling never books it:
/// its own record books it ([`of_no_order_decided`]), and what becomes of its refund once more ([`of_no_order_ended`]).
#[must_use]
pub fn of_no_order(payment: &PaymentRecord) -> Vec<Transfer> {
    if payment.outcome != PaymentOutcome::Refund(RefundReason::UnknownOrder) {
        return Vec::new();
    }
    let Capture { key, amount, .. } = &payment.capture;
    let provider = || Account::Provider(key.provider.clone());
    let transfer = |from, to, code| Transfer { from, to, code, amount: *amount };
    let mut moved = vec![transfer(provider(), Account::Owed, TransferCode::Unowned)];
    let back = || transfer(Account::Owed, provider(), TransferCode::SentBack);
    for _ in 0..payment.undone {
        moved.extend([back(), transfer(provider(), Account::Owed, TransferCode::SentBackUndone)]);
    }
    match payment.refund.as_ref().map(|refund| refund.state) {
        Some(RefundState::Refunded) => moved.push(back()),
        Some(RefundState::Settled) => {
            moved.push(transfer(Account::Owed, Account::Bank, TransferCode::PaidOtherwise));
        }
        Some(RefundState::Explained) => {
            moved.push(transfer(Account::Owed, Account::Explained, TransferCode::Explained));
        }
        Some(
            RefundState::Due
            | RefundState::Requested
            | RefundState::Pending
            | RefundState::Failed
            | RefundState::Unmatched
            | RefundState::Outside
            | RefundState::FailedLater,
        )
        | None => {}
    }
    moved.retain(|transfer| !transfer.is_nothing());
    moved
}

/// The transfer of [`of_no_order`] that is booked where the decision is recorded.
#[must_use]
pub fn of_no_order_decided(payment: &PaymentRecord) -> Option<Transfer> {
    of_no_order(payment).into_iter().next()
}

/// The transfer of [`of_no_order`] that is booked where the state of the refund is recorded: the money is back, or came to
/// us again, or an operator has said what it was or how it was paid. `None` where nothing moves.
#[must_use]
pub fn of_no_order_ended(payment: &PaymentRecord) -> Option<Transfer> {
    match payment.refund.as_ref()?.state {
        RefundState::Refunded
        | RefundState::Explained
        | RefundState::Settled
        | RefundState::FailedLater => of_no_order(payment).into_iter().skip(1).next_back(),
        RefundState::Due
        | RefundState::Requested
        | RefundState::Pending
        | RefundState::Failed
        | RefundState::Unmatched
        | RefundState::Outside => None,
    }
}

fn summed<'a>(
    orders: impl IntoIterator<Item = &'a Order>,
    takes: impl Fn(&Order, u32) -> bool,
) -> Vec<Transfer> {
    let mut sums = Sums::new();
    for order in orders {
        // What the merchant and the platform have of the order so far.
        let mut kept = MinorUnits::ZERO;
        for (number, fact) in (1..).zip(&order.facts.all) {
            let moved = derive_transfers(order, fact, &mut kept);
            if !takes(order, number) {
                continue;
            }
            for Transfer { from, to, code, amount } in moved {
                add(
                    sums.entry((from, to, code, amount.currency)).or_default(),
                    amount.amount_minor,
                );
            }
        }
    }
    let mut transfers = Vec::new();
    for ((from, to, code, currency), amounts) in sums {
        for amount_minor in amounts {
            let amount = Money { amount_minor, currency };
            transfers.push(Transfer { from: from.clone(), to: to.clone(), code, amount });
        }
    }
    transfers.retain(|transfer| !transfer.is_nothing());
    transfers
}

/// Adds an amount to the last amount of a sum, or appends it if that would overflow.
fn add(amounts: &mut Vec<MinorUnits>, more: MinorUnits) {
    if let Some(last) = amounts.last_mut()
        && let Some(sum) = last.0.checked_add(more.0)
    {
        *last = MinorUnits(sum);
    } else {
        amounts.push(more);
    }
}

/// Derives the transfers of one fact of an order. `kept` is the rest of the order's payment before the fact, and after
/// the call the rest after it. The commission is on that rest, so an order that is refunded whole costs its merchant
/// nothing, in however many parts.
fn derive_transfers(order: &Order, fact: &Fact, kept: &mut MinorUnits) -> Vec<Transfer> {
    let Some(moved) = &fact.cause.moved else { return Vec::new() };
    let Money { amount_minor: all, currency } = moved.amount;
    let terms = &order.merchant;
    let merchant = || Account::Merchant(terms.merchant.clone(), order.sale.clone());
    let provider = || Account::Provider(moved.payment.provider.clone());
    let transfer = |from, to, code, amount_minor| {
        let amount = Money { amount_minor, currency };
        Transfer { from, to, code, amount }
    };
    let before = *kept;
    *kept = fact.keeps(before);
    match fact.kind {
        FactKind::Paid | FactKind::Rescued => {
            let commission = terms.commission(all);
            // The money of replaced tickets is owed since those tickets were given up.
            let from = || if order.is_moved(&moved.payment) { Account::Owed } else { provider() };
            vec![
                transfer(from(), merchant(), TransferCode::Sale, all - commission),
                transfer(from(), Account::Fees, TransferCode::Commission, commission),
            ]
        }
        FactKind::RefundDue | FactKind::CaptureRefused => {
            vec![transfer(provider(), Account::Owed, TransferCode::Unowned, all)]
        }
        FactKind::RefundMade => {
            let given_up = terms.commission(before) - terms.commission(*kept);
            vec![
                transfer(merchant(), Account::Owed, TransferCode::Refund, all - given_up),
                transfer(Account::Fees, Account::Owed, TransferCode::CommissionBack, given_up),
            ]
        }
        FactKind::Refunded if fact.cause.by == Actor::Operator => {
            vec![transfer(Account::Owed, Account::Bank, TransferCode::PaidOtherwise, all)]
        }
        FactKind::RefundUndone => {
            let is_disputed = moved.reason == Some(RefundReason::Disputed);
            let from = if is_disputed { Account::Disputed } else { provider() };
            vec![transfer(from, Account::Owed, TransferCode::SentBackUndone, all)]
        }
        FactKind::Refunded => {
            vec![transfer(Account::Owed, provider(), TransferCode::SentBack, all)]
        }
        FactKind::DisputeOpened => {
            vec![transfer(Account::Disputed, provider(), TransferCode::Disputed, all)]
        }
        FactKind::DisputeWon | FactKind::DisputeLost => {
            vec![transfer(provider(), Account::Disputed, TransferCode::DisputeOver, all)]
        }
        FactKind::Made | FactKind::Cancelled | FactKind::Expired => Vec::new(),
    }
}

impl Transfer {
    fn is_nothing(&self) -> bool {
        self.amount.amount_minor == MinorUnits::ZERO
    }
}

/// What an account, or a part of it, has in one currency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Balance {
    /// All that came in, in minor units.
    pub incoming: i128,
    /// All that went out.
    pub outgoing: i128,
}

impl Balance {
    #[must_use]
    pub const fn left(&self) -> i128 {
        self.incoming - self.outgoing
    }

    /// This and another one.
    #[must_use]
    pub fn with(self, more: Self) -> Self {
        Self { incoming: self.incoming + more.incoming, outgoing: self.outgoing + more.outgoing }
    }
}

/// What transfers add to each account they touch, by currency.
#[must_use]
pub fn entries<'a>(
    transfers: impl IntoIterator<Item = &'a Transfer>,
) -> BTreeMap<(Account, Currency), Balance> {
    let mut entries: BTreeMap<(Account, Currency), Balance> = BTreeMap::new();
    for Transfer { from, to, amount, .. } in transfers {
        let Money { amount_minor, currency } = *amount;
        let amount = i128::from(amount_minor);
        entries.entry((from.clone(), currency)).or_default().outgoing += amount;
        entries.entry((to.clone(), currency)).or_default().incoming += amount;
    }
    entries
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::domain::basics::ids::{PaymentId, RequestFingerprint, UserId};
    use crate::domain::basics::number::Mint;
    use crate::domain::basics::time::Timestamp;
    use crate::domain::order::attempt::Attempts;
    use crate::domain::order::fact::{Cause, Facts, Moved};
    use crate::domain::order::order_refund::{RefundCounts, RefundNumber};
    use crate::domain::order::refund::Refund;
    use crate::domain::order::{OrderState, PaymentKey};
    use crate::domain::sale::{BASIS_POINTS, MerchantTerms};

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_000);

    fn fact(kind: FactKind, payment: &str, amount: i64) -> Fact {
        let payment = PaymentKey {
            provider: ProviderId::new("stripe").unwrap(),
            payment: PaymentId::new(payment).unwrap(),
        };
        let currency = Currency::new("CNY").unwrap();
        let amount = Money { amount_minor: MinorUnits(amount), currency };
        let is_refund = kind == FactKind::RefundMade;
        let reason = is_refund.then_some(RefundReason::Returned);
        let refund = is_refund.then_some(RefundNumber::FIRST);
        let moved = Some(Moved { payment, amount, reason, refund });
        Fact { kind, at: NOW, cause: Cause { by: Actor::Provider, moved } }
    }

    /// An order that tells of these amounts.
    pub(crate) fn order(basis_points: u16, told: &[(FactKind, i64)]) -> Order {
        let user = UserId::new("7").unwrap();
        let made = Fact { kind: FactKind::Made, at: NOW, cause: Cause::BUYER };
        let told = told.iter().map(|(kind, amount)| fact(*kind, "pi", *amount));
        Order {
            number: Mint::new(0).mint(NOW, &user),
            sale: SaleId::new("carmen").unwrap(),
            user,
            state: OrderState::Paid,
            lines: Vec::new(),
            total: Money { amount_minor: MinorUnits(0), currency: Currency::new("CNY").unwrap() },
            fingerprint: RequestFingerprint::new("0123456789abcdef").unwrap(),
            created_at: NOW,
            pay_by: NOW,
            changed_at: NOW,
            payment: None,
            attempts: Attempts::default(),
            facts: Facts { all: [made].into_iter().chain(told).collect(), settled: 0 },
            refunds: RefundCounts::default(),
            merchant: MerchantTerms {
                merchant: MerchantId::new("opera").unwrap(),
                commission_basis_points: basis_points,
                points: None,
            },
            exchange: None,
        }
    }

    fn texts(transfers: &[Transfer]) -> Vec<String> {
        let text = |transfer: &Transfer| {
            let Transfer { from, to, code, amount } = transfer;
            format!("{from} > {to} {} {amount}", code.as_str())
        };
        transfers.iter().map(text).collect()
    }

    #[test]
    fn a_sale_is_shared_and_a_refund_gives_the_share_back() {
        let paid = order(350, &[(FactKind::Paid, 10_000)]);
        assert_eq!(
            texts(&transfers([&paid])),
            [
                "provider:stripe > merchant:opera:carmen sale 9650 CNY",
                "provider:stripe > fees commission 350 CNY",
            ]
            .map(str::to_owned)
        );
        let told =
            [(FactKind::Paid, 10_000), (FactKind::RefundMade, 4_999), (FactKind::Refunded, 4_999)];
        let refunded = order(350, &told);
        let refunded = Order { facts: Facts { settled: 2, ..refunded.facts }, ..refunded };
        assert_eq!(
            texts(&transfers([&refunded])),
            [
                "merchant:opera:carmen > owed refund 4824 CNY",
                "fees > owed commission_back 175 CNY",
                "owed > provider:stripe sent_back 4999 CNY",
            ]
            .map(str::to_owned),
            "the rest of the facts alone"
        );
        assert_eq!(booked([&refunded]), transfers([&paid]), "those that are settled");
    }

    #[test]
    fn what_buys_nothing_is_owed_until_it_is_back() {
        let told = [(FactKind::CaptureRefused, 700), (FactKind::Refunded, 700)];
        let balances = entries(&transfers([&order(350, &told)]));
        assert!(balances.values().all(|balance| balance.left() == 0));
        let due = transfers([&order(350, &[(FactKind::RefundDue, 700)])]);
        assert_eq!(texts(&due), ["provider:stripe > owed unowned 700 CNY"]);
    }

    #[test]
    fn what_is_of_no_order_is_booked_with_its_own_record_and_that_of_its_refund() {
        let key = PaymentKey {
            provider: ProviderId::new("stripe").unwrap(),
            payment: PaymentId::new("pi").unwrap(),
        };
        let amount =
            Money { amount_minor: MinorUnits(700), currency: Currency::new("EUR").unwrap() };
        let capture = Capture { key, order: order(0, &[]).number, amount, attempt: None };
        let decided =
            |reason| PaymentRecord::decided(&capture, PaymentOutcome::Refund(reason), NOW);
        let nobodys = decided(RefundReason::UnknownOrder);
        let owed = "provider:stripe > owed unowned 700 EUR".to_owned();
        let back = "owed > provider:stripe sent_back 700 EUR".to_owned();
        let explained = "owed > explained explained 700 EUR".to_owned();
        let otherwise = "owed > bank paid_otherwise 700 EUR".to_owned();
        let decided_now = texts(of_no_order_decided(&nobodys).as_slice());
        assert_eq!(
            (texts(&of_no_order(&nobodys)), decided_now),
            (vec![owed.clone()], vec![owed.clone()])
        );
        for state in RefundState::ALL {
            let refund = nobodys.refund.clone().map(|refund| Refund { state, ..refund });
            let later = PaymentRecord { refund, ..nobodys.clone() };
            let expected = match state {
                RefundState::Refunded => (vec![owed.clone(), back.clone()], vec![back.clone()]),
                RefundState::Explained => {
                    (vec![owed.clone(), explained.clone()], vec![explained.clone()])
                }
                RefundState::Settled => {
                    (vec![owed.clone(), otherwise.clone()], vec![otherwise.clone()])
                }
                RefundState::Due
                | RefundState::Requested
                | RefundState::Pending
                | RefundState::Failed
                | RefundState::Unmatched
                | RefundState::Outside
                | RefundState::FailedLater => (vec![owed.clone()], vec![]),
            };
            let ended = texts(of_no_order_ended(&later).as_slice());
            assert_eq!((texts(&of_no_order(&later)), ended), expected, "{state:?}");
        }
        // Money that came to us again was back once, and is owed once more.
        let again = "provider:stripe > owed sent_back_undone 700 EUR".to_owned();
        let due =
            nobodys.refund.clone().map(|refund| Refund { state: RefundState::Refunded, ..refund });
        let undone = PaymentRecord { refund: due, ..nobodys.clone() }.undone("no", NOW).unwrap();
        let all = vec![owed.clone(), back.clone(), again.clone()];
        let moved = (texts(&of_no_order(&undone)), texts(of_no_order_ended(&undone).as_slice()));
        assert_eq!(moved, (all, vec![again]));
        let of_an_order = decided(RefundReason::SecondPayment);
        assert_eq!((of_no_order(&of_an_order), of_no_order_decided(&of_an_order)), (vec![], None));
    }

    #[test]
    fn captures_of_any_amount_are_booked_whole() {
        let all = i64::MAX;
        let told = [(FactKind::CaptureRefused, all), (FactKind::CaptureRefused, all)];
        let made = transfers([&order(350, &told)]);
        assert_eq!(made.len(), 2);
        let balances = entries(&made);
        assert_eq!(balances[&(Account::Owed, made[0].amount.currency)].left(), 2 * i128::from(all));
    }

    #[test]
    fn a_dispute_takes_money_away_until_it_is_won_or_refunded() {
        let paid = (FactKind::Paid, 1000);
        let opened = (FactKind::DisputeOpened, 700);
        let balances = |told: &[(FactKind, i64)]| -> Vec<(String, i128)> {
            let balances = entries(&transfers([&order(1000, told)]));
            let left = balances.iter().map(|((account, _), one)| (account.to_string(), one.left()));
            left.filter(|(_, left)| *left != 0).collect()
        };
        let of = |all: &[(&str, i128)]| -> Vec<(String, i128)> {
            all.iter().map(|(account, left)| ((*account).to_owned(), *left)).collect()
        };
        let merchant = "merchant:opera:carmen";
        let whole = of(&[(merchant, 900), ("provider:stripe", -1000), ("fees", 100)]);
        assert_eq!(balances(&[paid]), whole);
        let open =
            of(&[(merchant, 900), ("provider:stripe", -300), ("fees", 100), ("disputed", -700)]);
        assert_eq!(balances(&[paid, opened]), open);
        assert_eq!(balances(&[paid, opened, (FactKind::DisputeWon, 700)]), whole);
        let lost = [
            paid,
            opened,
            (FactKind::RefundMade, 700),
            (FactKind::DisputeLost, 700),
            (FactKind::Refunded, 700),
        ];
        let rest = of(&[(merchant, 270), ("provider:stripe", -300), ("fees", 30)]);
        assert_eq!(balances(&lost), rest);
    }

    #[test]
    fn what_costs_nothing_moves_nothing() {
        assert_eq!(transfers([&order(350, &[(FactKind::Paid, 0)])]), []);
        let house = MerchantTerms::house();
        assert_eq!(house.commission(MinorUnits(10_000)), MinorUnits::ZERO);
    }

    #[test]
    fn an_account_is_read_as_it_is_written() {
        for text in ["fees", "owed", "disputed", "provider:stripe", "merchant:opera:carmen-2026"] {
            assert_eq!(
                text.parse::<Account>().map(|account| account.to_string()),
                Ok(text.to_owned())
            );
        }
        for text in ["", "fee", "merchant:opera", "provider:", "buyer:7", "owed:"] {
            assert!(text.parse::<Account>().is_err(), "{text}");
        }
        for code in TransferCode::ALL {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }

    #[test]
    fn nothing_is_lost_or_made_however_an_order_goes_back() {
        let cuts: [&[i64]; 6] =
            [&[], &[1], &[4_999, 5_001], &[3_333, 3_333, 3_333], &[1, 1, 1, 9_996], &[0, 9_999]];
        for basis_points in [0, 1, 350, 3_333, 9_999, BASIS_POINTS] {
            for parts in cuts {
                for left in [0, 1, 10_001] {
                    goes_back(basis_points, parts, left);
                }
            }
        }
    }

    /// An order of which these parts go back and the rest is left.
    fn goes_back(basis_points: u16, parts: &[i64], left: i64) {
        let all = parts.iter().sum::<i64>() + left;
        let refunds = parts
            .iter()
            .flat_map(|part| [(FactKind::RefundMade, *part), (FactKind::Refunded, *part)]);
        let told: Vec<(FactKind, i64)> =
            [(FactKind::Paid, all)].into_iter().chain(refunds).collect();
        let order = order(basis_points, &told);
        let what = format!("{basis_points} basis points, {parts:?} back, {left} left");
        let made = transfers([&order]);
        let is_something = |transfer: &Transfer| transfer.amount.amount_minor > MinorUnits::ZERO;
        assert!(made.iter().all(is_something), "{what}");
        let balances = entries(&made);
        let left_of = |account: &str| {
            let key = (account.parse().unwrap(), Currency::new("CNY").unwrap());
            balances.get(&key).map_or(0, |balance: &Balance| balance.left())
        };
        let (left, commission) =
            (i128::from(left), order.merchant.commission(MinorUnits(left)).into());
        assert_eq!(balances.values().map(Balance::left).sum::<i128>(), 0, "{what}");
        assert_eq!(left_of("provider:stripe"), -left, "{what}");
        assert_eq!(left_of("owed"), 0, "{what}");
        assert_eq!(left_of("fees"), commission, "{what}");
        assert_eq!(left_of("merchant:opera:carmen"), left - commission, "{what}");

        // Settled in any two steps it is the same.
        for settled in 0..=order.facts.count() {
            let some = Order { facts: Facts { settled, ..order.facts.clone() }, ..order.clone() };
            let both: Vec<Transfer> =
                booked([&some]).into_iter().chain(transfers([&some])).collect();
            assert_eq!(entries(&both), balances, "{what}, {settled} settled");
        }
    }
}
