//! The list of a sale's tickets that are void.

use serde::{Deserialize, Serialize};

use super::keys::{NoKey, PublicKeys, TicketKeys, Unverified};
use engine::domain::basics::ids::SaleId;
use engine::domain::basics::number::OrderNumber;
use engine::domain::basics::time::Timestamp;
use engine::domain::order::Issue;
use engine::domain::ticket::{RevokedPage, TicketNumber};

/// What the header of a list says it is.
const TYPE: &str = "revoked";
/// Most bytes of a page of a list: as much as a function may answer.
const MAX_LIST_BYTES: usize = 6 * 1024 * 1024;

/// A page of what was revoked of a sale, by the numbers of the orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RevokedList {
    /// The deployment that has signed it.
    #[serde(rename = "d")]
    pub deployment: String,
    #[serde(rename = "s")]
    pub sale: SaleId,
    /// When it was read, in seconds since 1970.
    pub at: i64,
    /// True if the sale was cancelled: then every ticket is void, and none is listed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub all: bool,
    /// The order with which the page begins; absent on the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<OrderNumber>,
    /// The order with which the next page begins; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<OrderNumber>,
    /// Tickets that were refunded or issued anew: the order, the ticket, and the lowest issue that is good, 0 if
    /// none is.
    pub revoked: Vec<(OrderNumber, TicketNumber, u32)>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_false(all: &bool) -> bool {
    !*all
}

/// Why a text is no list of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListDefect {
    /// It is no list.
    #[error("it is no list of revoked tickets")]
    Malformed,
    /// It is signed with a key that is none of these.
    #[error("the list is signed with another deployment's key ({0})")]
    OtherKey(String),
    /// It is not what its key has signed.
    #[error("the signature of the list does not fit")]
    BadSignature,
    /// It is signed with one of these keys, for another deployment.
    #[error("the list is of another deployment ({0})")]
    OtherDeployment(String),
}

impl From<Unverified> for ListDefect {
    fn from(unverified: Unverified) -> Self {
        match unverified {
            Unverified::Malformed => Self::Malformed,
            Unverified::OtherKey(kid) => Self::OtherKey(kid),
            Unverified::Forged => Self::BadSignature,
        }
    }
}

impl RevokedList {
    /// A page that was read at `now`.
    #[must_use]
    pub fn new(
        deployment: &str,
        sale: &SaleId,
        from: Option<OrderNumber>,
        page: &RevokedPage,
        now: Timestamp,
    ) -> Self {
        let each = page.orders.iter().flat_map(|of| {
            let lowest = |issue: Option<Issue>| issue.map_or(0, Issue::get);
            of.tickets.iter().map(move |(ticket, issue)| (of.order, *ticket, lowest(*issue)))
        });
        let (deployment, at) = (deployment.to_owned(), now.ms().div_euclid(1000));
        let (sale, next, revoked) = (sale.clone(), page.next, each.collect());
        Self { deployment, sale, at, all: false, from, next, revoked }
    }

    /// The list of a sale that was cancelled: one line, however many tickets it had.
    #[must_use]
    pub fn of_cancelled(deployment: &str, sale: &SaleId, now: Timestamp) -> Self {
        Self { all: true, ..Self::new(deployment, sale, None, &RevokedPage::default(), now) }
    }

    /// True if what is revoked of an order stands on this page.
    #[must_use]
    pub fn reaches(&self, order: OrderNumber) -> bool {
        self.all
            || (self.from.is_none_or(|from| from <= order)
                && self.next.is_none_or(|next| order < next))
    }

    /// The lowest issue of a ticket that is good; `None` if none is.
    #[must_use]
    pub fn lowest_good(&self, order: OrderNumber, ticket: TicketNumber) -> Option<Issue> {
        if self.all {
            return None;
        }
        let listed = self.revoked.iter().find(|(of, number, _)| (*of, *number) == (order, ticket));
        listed.map_or(Some(Issue::FIRST), |(_, _, lowest)| Issue::try_from(*lowest).ok())
    }
}

impl TicketKeys {
    /// Signs a page of a list.
    ///
    /// # Errors
    /// Returns [`NoKey`] if there is none.
    pub fn sign_list(&self, list: &RevokedList) -> Result<String, NoKey> {
        self.signed(TYPE, list)
    }
}

impl PublicKeys {
    /// Reads a page of a list that this deployment has signed.
    ///
    /// # Errors
    /// Returns the first [`ListDefect`].
    pub fn check_list(&self, list: &str) -> Result<RevokedList, ListDefect> {
        if list.len() > MAX_LIST_BYTES {
            return Err(ListDefect::Malformed);
        }
        let read: RevokedList = self.verified(list, TYPE)?;
        if read.deployment != self.deployment {
            return Err(ListDefect::OtherDeployment(read.deployment));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Standing, TicketCode, TicketSecrets};
    use super::*;
    use engine::domain::basics::ids::TierId;
    use engine::domain::ticket::RevokedOrder;

    const NOW: Timestamp = Timestamp::from_ms(1_800_000_000_999);

    fn keys(deployment: &str, secret: &str) -> TicketKeys {
        TicketKeys::new(deployment, &TicketSecrets::new(vec![secret.repeat(32)]).unwrap())
    }

    fn order(number: u32) -> OrderNumber {
        number.to_string().parse().unwrap()
    }

    fn number(number: u8) -> TicketNumber {
        TicketNumber::try_from(number).unwrap()
    }

    fn page(orders: &[u32], next: Option<u32>) -> RevokedPage {
        let tickets = [(number(1), None), (number(2), Some(Issue::FIRST.next()))];
        let of = |of: &u32| RevokedOrder { order: order(*of), tickets: tickets.into() };
        RevokedPage { orders: orders.iter().map(of).collect(), next: next.map(order) }
    }

    fn list(sale: &str, from: Option<u32>, page: &RevokedPage) -> RevokedList {
        RevokedList::new("d", &SaleId::new(sale).unwrap(), from.map(order), page, NOW)
    }

    fn code(of: u32, ticket: u8, issue: u32) -> TicketCode {
        TicketCode {
            deployment: "d".to_owned(),
            sale: SaleId::new("s").unwrap(),
            tier: TierId::new("a").unwrap(),
            seat: None,
            journey: None,
            order: order(of),
            ticket: number(ticket),
            issue: Issue::try_from(issue).unwrap(),
        }
    }

    #[test]
    fn a_list_is_read_as_it_was_signed_and_no_other_is() {
        let ours = keys("d", "a");
        let first = list("s", None, &page(&[5, 7], Some(9)));
        let signed = ours.sign_list(&first).unwrap();
        assert_eq!(ours.public().check_list(&signed), Ok(first.clone()));
        assert_eq!(first.at, 1_800_000_000);
        let says = serde_json::to_value(&first).unwrap();
        assert_eq!(says["revoked"][1], serde_json::json!(["5", 2, 2]));
        let foreign = keys("d", "b").sign_list(&first).unwrap();
        let refused = ours.public().check_list(&foreign);
        assert!(matches!(refused, Err(ListDefect::OtherKey(_))), "{refused:?}");
        let renamed = keys("e", "a").public().check_list(&signed);
        assert_eq!(renamed, Err(ListDefect::OtherDeployment("d".to_owned())));
        // A code is no list.
        let code = ours.sign_code(&code(5, 1, 1)).unwrap();
        assert_eq!(ours.public().check_list(&code), Err(ListDefect::Malformed));
    }

    #[test]
    fn a_ticket_stands_as_the_page_says_that_reaches_it() {
        let pages =
            [list("s", None, &page(&[5, 7], Some(9))), list("s", Some(9), &page(&[9], None))];
        for (of, ticket, issue, standing) in [
            (5, 1, 1, Standing::Revoked),
            (5, 1, 9, Standing::Revoked),
            (5, 2, 1, Standing::OldIssue),
            (5, 2, 2, Standing::Good),
            (5, 3, 1, Standing::Good),
            (6, 1, 1, Standing::Good),
            (9, 1, 1, Standing::Revoked),
            (10, 1, 1, Standing::Good),
        ] {
            let code = code(of, ticket, issue);
            assert_eq!(code.standing(&pages), standing, "{of} {ticket} {issue}");
        }
        // One page alone says nothing of the orders of the other, and none of those of another sale.
        assert_eq!(code(9, 1, 1).standing(&pages[..1]), Standing::NotListed);
        assert_eq!(code(5, 1, 1).standing(&pages[1..]), Standing::NotListed);
        let other = [list("other", None, &page(&[], None))];
        assert_eq!(code(5, 1, 1).standing(&other), Standing::NotListed);
        let cancelled = RevokedList::of_cancelled("d", &SaleId::new("s").unwrap(), NOW);
        assert_eq!(code(6, 1, 1).standing(&[cancelled]), Standing::Revoked);
    }
}
