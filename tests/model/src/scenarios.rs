//! The scenarios that are explored: one for each race.

use engine::domain::basics::money::MinorUnits;
use engine::domain::inventory::choice::{Choice, Together};
use engine::domain::order::place::EXTENSION_SECONDS;
use engine::flows::load::LEASE_MS;

use crate::scenario::{Budget, Buyer, Delivers, PRICE_MINOR, Scenario, balcony};

/// What two tickets cost.
const TWO_TICKETS_MINOR: MinorUnits = MinorUnits(2 * PRICE_MINOR.0);
/// Everything over both legs.
const WHOLE: (u16, u16) = (0, 2);
/// The only leg of a concert.
const ONE_LEG: (u16, u16) = (0, 1);
/// Just after the payment window of an order that was made at the start.
const PAST_THE_DEADLINE: i64 = 61;
/// Just after the lease of a loader that began at the start; the order's window is not over.
const PAST_THE_LEASE: i64 = LEASE_MS / 1000 + 1;
/// Within the payment window, before a list that lags has what was paid at the start.
const BEFORE_THE_DEADLINE: i64 = 20;
/// After the payment window, and while a place of then is good.
const PLACE: i64 = 90;
const PAST_THE_PLACE: i64 = 100;
/// Just after the time to which that place extends the order.
const PAST_THE_EXTENSION: i64 = PLACE + EXTENSION_SECONDS + 1;
/// Just after its grace.
const PAST_THE_GRACE: i64 = 181;

fn best(count: u16) -> Choice {
    Choice::Best { count, together: Together::Preferred }
}

fn first() -> Buyer {
    Buyer::of_seat("1", 1, WHOLE, 0)
}

fn second() -> Buyer {
    Buyer::of_seat("2", 2, WHOLE, 0)
}

/// A buyer whose order is paid at the start.
fn paid() -> Buyer {
    first().pays(&[PRICE_MINOR])
}

/// A buyer whose order of two tickets is paid at the start.
fn paid_for_two() -> Buyer {
    Buyer::new("1", 1, WHOLE, best(2)).pays(&[TWO_TICKETS_MINOR])
}

const NONE: Delivers = Delivers {
    expiry: false,
    sync: false,
    load: false,
    refund: false,
    callback: false,
    close: false,
};
/// The expiry queue delivers, and the one by which orders are handed over.
const EXPIRY: Delivers = Delivers { expiry: true, close: true, ..NONE };
/// The load queue alone delivers.
const LOAD: Delivers = Delivers { load: true, ..NONE };
/// The sync queue alone delivers.
const SYNC: Delivers = Delivers { sync: true, ..NONE };
/// The queue of kept captures alone delivers.
const CALLBACK: Delivers = Delivers { callback: true, ..NONE };
/// The refund queue alone delivers.
const REFUND: Delivers = Delivers { refund: true, ..NONE };

/// A pending order's time runs out while its payment comes in; a message may come twice.
#[must_use]
pub fn expiry_against_payment() -> Scenario {
    Scenario::new("expiry against payment", 2, vec![first().pays(&[PRICE_MINOR])])
        .with_order(0)
        .until(&[PAST_THE_DEADLINE])
        .delivering(EXPIRY)
        .budget(Budget { callbacks: 1, copies: 1, ..Budget::default() })
}

/// A pending order's time runs out, and then its grace, while its payment comes in at a provider that
/// may list it late.
#[must_use]
pub fn payment_listed_late() -> Scenario {
    Scenario::new("payment that is listed late", 2, vec![first().pays(&[PRICE_MINOR])])
        .with_order(0)
        .lagging()
        .until(&[PAST_THE_DEADLINE, PAST_THE_GRACE])
        .delivering(EXPIRY)
        .budget(Budget { callbacks: 1, ..Budget::default() })
}

/// A provider's list is read once, while a payment comes in that it may have late and of which nobody
/// calls back.
#[must_use]
pub fn captures_that_are_read() -> Scenario {
    Scenario::new("captures that are read", 2, vec![first().pays(&[PRICE_MINOR])])
        .with_order(0)
        .lagging()
        .listing()
        .until(&[BEFORE_THE_DEADLINE, PAST_THE_DEADLINE, PAST_THE_GRACE])
        .delivering(EXPIRY)
        .budget(Budget { reads: 1, ..Budget::default() })
}

/// The list is read before the deadline and again past the grace: the first time without the payment, if
/// the provider has it late.
#[must_use]
pub fn captures_that_are_read_again() -> Scenario {
    Scenario::new("captures that are read again", 2, vec![first().pays(&[PRICE_MINOR])])
        .with_order(0)
        .lagging()
        .listing()
        .until(&[BEFORE_THE_DEADLINE, PAST_THE_GRACE])
        .delivering(EXPIRY)
        .budget(Budget { reads: 2, ..Budget::default() })
}

/// A buyer pays and cancels at once, until the order would end by itself.
#[must_use]
pub fn cancel_against_payment() -> Scenario {
    Scenario::new("cancel against payment", 2, vec![first().cancels().pays(&[PRICE_MINOR])])
        .with_order(0)
        .until(&[PAST_THE_DEADLINE])
        .delivering(EXPIRY)
        .budget(Budget { callbacks: 1, ..Budget::default() })
}

/// The same before the deadline, and anything may fail once.
#[must_use]
pub fn cancel_that_fails() -> Scenario {
    let buyers = vec![first().cancels().pays(&[PRICE_MINOR])];
    Scenario::new("cancel against payment while something fails", 2, buyers)
        .with_order(0)
        .delivering(NONE)
        .budget(Budget { callbacks: 1, faults: 1, ..Budget::default() })
}

/// A late payment finds its seat with another buyer, or free again.
#[must_use]
pub fn rescue_against_another_buyer() -> Scenario {
    let buyers = vec![first().pays(&[PRICE_MINOR]), second().requests(2).cancels()];
    Scenario::new("late money against another buyer", 2, buyers)
        .with_order(0)
        .until(&[PAST_THE_DEADLINE])
        .delivering(EXPIRY)
        .budget(Budget { callbacks: 1, ..Budget::default() })
}

/// Money that goes back, by a message that comes twice, and once it fails.
#[must_use]
pub fn refund() -> Scenario {
    Scenario::new("money that goes back", 2, vec![first().pays(&[PRICE_MINOR - MinorUnits(1)])])
        .with_order(0)
        .delivering(REFUND)
        .budget(Budget { callbacks: 2, copies: 1, faults: 1, ..Budget::default() })
}

/// A pending order's time runs out while its payment comes in, and no store can take it: it is kept, and
/// its message is delivered before the deadline or after it. Any step goes wrong.
#[must_use]
pub fn kept_against_expiry() -> Scenario {
    Scenario::new("kept capture against expiry", 2, vec![first().pays(&[PRICE_MINOR])])
        .with_order(0)
        .keeping()
        .until(&[BEFORE_THE_DEADLINE, PAST_THE_DEADLINE])
        .delivering(Delivers { callback: true, ..EXPIRY })
        .budget(Budget { callbacks: 1, faults: 1, ..Budget::default() })
}

/// A buyer pays twice; captures that cannot be decided are kept, and their messages come twice and at once.
/// Any two steps go wrong.
#[must_use]
pub fn kept_twice() -> Scenario {
    Scenario::new("two captures that are kept", 2, vec![first().pays(&[PRICE_MINOR, PRICE_MINOR])])
        .with_order(0)
        .keeping()
        .until(&[BEFORE_THE_DEADLINE])
        .delivering(CALLBACK)
        .budget(Budget { callbacks: 1, copies: 1, faults: 2, ..Budget::default() })
}

/// A buyer begins to pay in the last moment, and pays while the order is closed and ends.
#[must_use]
pub fn start_against_expiry() -> Scenario {
    Scenario::new("start against expiry", 2, vec![first().starts(1)])
        .with_order(0)
        .graced()
        .until(&[PAST_THE_DEADLINE])
        .delivering(EXPIRY)
        .budget(Budget { callbacks: 1, ..Budget::default() })
}

/// The same, and the message of the expiry comes twice.
#[must_use]
pub fn expiry_that_comes_twice() -> Scenario {
    let budget = Budget { callbacks: 1, copies: 1, ..Budget::default() };
    Scenario { name: "start against expiries", ..start_against_expiry() }.budget(budget)
}

/// The same, while something fails, until the grace is over.
#[must_use]
pub fn close_that_fails() -> Scenario {
    let budget = Budget { faults: 1, ..Budget::default() };
    Scenario { name: "start against expiry while something fails", ..start_against_expiry() }
        .until(&[PAST_THE_GRACE + 61])
        .budget(budget)
}

/// A buyer has a place after the payment window, starts in it, and pays while the order is closed and ends: the provider
/// tells of the payment when it is asked.
#[must_use]
pub fn place_against_expiry() -> Scenario {
    Scenario::new("a place against expiry", 2, vec![first().starts(2)])
        .with_order(0)
        .graced()
        .busy_until(PLACE)
        .until(&[PAST_THE_PLACE, PAST_THE_EXTENSION])
        .delivering(EXPIRY)
}

/// A buyer goes to another page while the first is paid.
#[must_use]
pub fn two_starts() -> Scenario {
    Scenario::new("two starts", 2, vec![first().starts(2)])
        .with_order(0)
        .graced()
        .delivering(EXPIRY)
        .budget(Budget { callbacks: 1, ..Budget::default() })
}

/// A buyer goes to a form without having opened the page, and may pay both.
#[must_use]
pub fn absent_page() -> Scenario {
    Scenario { name: "a page that was not opened", ..two_starts() }.lazy()
}

/// A start fails at any step, and the buyer asks again.
#[must_use]
pub fn start_that_fails() -> Scenario {
    Scenario::new("two starts while something fails", 2, vec![first().starts(2)])
        .with_order(0)
        .graced()
        .delivering(NONE)
        .budget(Budget { faults: 1, ..Budget::default() })
}

/// A buyer begins to pay and gives the order up.
#[must_use]
pub fn start_against_cancel() -> Scenario {
    Scenario::new("start against cancellation", 2, vec![first().starts(1).cancels()])
        .with_order(0)
        .graced()
        .delivering(Delivers { close: true, ..NONE })
        .budget(Budget { callbacks: 1, ..Budget::default() })
}

/// The same with a page that was not opened.
#[must_use]
pub fn absent_page_against_cancel() -> Scenario {
    Scenario { name: "an unopened page against cancellation", ..start_against_cancel() }.lazy()
}

/// Two buyers want the same seat; each asks again when an answer is lost.
#[must_use]
pub fn two_buyers_for_one_seat() -> Scenario {
    let buyers = vec![first().requests(2), second().requests(2)];
    Scenario::new("two buyers for one seat", 2, buyers)
        .budget(Budget { faults: 1, ..Budget::default() })
}

/// Two buyers whose journeys share a leg, and who take what is best.
#[must_use]
pub fn two_buyers_over_legs() -> Scenario {
    let buyers = vec![
        Buyer::new("1", 1, WHOLE, best(1)).requests(2).pays(&[PRICE_MINOR]),
        Buyer::new("2", 2, (1, 2), best(2)).requests(2).cancels(),
    ];
    Scenario::new("two buyers over two legs", 2, buyers).budget(Budget {
        callbacks: 1,
        faults: 1,
        ..Budget::default()
    })
}

/// Redis forgets, all or what is newest, while two buyers hold and claim.
#[must_use]
pub fn forgetting_against_claims() -> Scenario {
    let buyers = vec![
        Buyer::new("1", 1, WHOLE, best(1)).requests(2),
        Buyer::new("2", 2, WHOLE, best(1)).requests(1),
    ];
    Scenario::new("Redis forgets while two buyers hold and claim", 2, buyers).budget(Budget {
        losses: 1,
        loads: 1,
        ..Budget::default()
    })
}

/// Redis forgets a hold; its seat is given to another while the order is paid or expires.
#[must_use]
pub fn forgetting_against_payment() -> Scenario {
    let buyers = vec![first().pays(&[PRICE_MINOR]), second()];
    Scenario::new("Redis forgets a hold that is paid", 2, buyers)
        .with_order(0)
        .until(&[PAST_THE_DEADLINE])
        .delivering(EXPIRY)
        .budget(Budget { callbacks: 1, losses: 1, ..Budget::default() })
}

/// The sale is loaded again, twice at once, while an order is paid and another made.
#[must_use]
pub fn reload_against_traffic() -> Scenario {
    let buyers = vec![first().pays(&[PRICE_MINOR]), second()];
    Scenario::new("reload against live traffic", 2, buyers)
        .with_order(0)
        .delivering(LOAD)
        .budget(Budget { callbacks: 1, losses: 1, loads: 1, ..Budget::default() })
}

/// Redis has lost the sale, and two loaders write it in parts, the second once the lease of the first may
/// be over, while Redis forgets once more and a call fails.
#[must_use]
pub fn load_in_parts() -> Scenario {
    Scenario::new("load in parts", 2, vec![first()])
        .with_order(0)
        .lost_and_loaded_in_parts()
        .until(&[PAST_THE_LEASE])
        .budget(Budget { losses: 2, loads: 2, ..Budget::default() })
}

/// Redis has lost one of two tiers that are kept apart, and all are loaded while somebody orders in the other;
/// a call fails.
#[must_use]
pub fn tier_lost() -> Scenario {
    let pending = Buyer::of_seat("1", 1, ONE_LEG, 0).in_tier(balcony());
    Scenario::apart("one tier lost", 2, vec![pending, Buyer::of_seat("2", 2, ONE_LEG, 0)])
        .with_order(0)
        .without_tier(&balcony())
        .budget(Budget { losses: 1, loads: 1, faults: 1, ..Budget::default() })
}

/// A buyer orders in two tiers at once, each of which counts by itself, under a limit for both, and may give
/// up the first order; a call fails.
#[must_use]
pub fn limit_over_tiers() -> Scenario {
    let other = Buyer::of_seat("1", 2, ONE_LEG, 0).in_tier(balcony());
    let first = Buyer::of_seat("1", 1, ONE_LEG, 0).requests(2).cancels();
    Scenario::apart("limit over tiers", 1, vec![first, other])
        .budget(Budget { faults: 1, ..Budget::default() })
}

/// Every message and callback comes again.
#[must_use]
pub fn duplicates() -> Scenario {
    Scenario::new("duplicate messages", 2, vec![first().pays(&[PRICE_MINOR])])
        .with_order(0)
        .delivering(SYNC)
        .budget(Budget { callbacks: 2, copies: 1, ..Budget::default() })
}

/// A reservation from its first step to its end; any two steps go wrong.
#[must_use]
pub fn crash_at_every_step() -> Scenario {
    Scenario::new("two faults anywhere", 2, vec![first().requests(2)])
        .until(&[PAST_THE_DEADLINE])
        .delivering(EXPIRY)
        .budget(Budget { faults: 2, ..Budget::default() })
}

/// The sweeper compares and repairs while a buyer orders and another gives up.
#[must_use]
pub fn sweeper_against_traffic() -> Scenario {
    let buyers = vec![first().cancels(), second()];
    Scenario::new("sweeper against live traffic", 2, buyers)
        .with_order(0)
        .until(&[PAST_THE_DEADLINE])
        .budget(Budget { sweeps: 1, ..Budget::default() })
}

/// A buyer pays twice, and before that too little.
#[must_use]
pub fn second_and_wrong_payments() -> Scenario {
    let payments = [PRICE_MINOR - MinorUnits(1), PRICE_MINOR, PRICE_MINOR];
    Scenario::new("second and wrong payments", 2, vec![first().pays(&payments)])
        .with_order(0)
        .budget(Budget { callbacks: 1, ..Budget::default() })
}

/// One buyer with two admissions and a limit of one ticket, while Redis forgets.
#[must_use]
pub fn limit_against_forgetting() -> Scenario {
    let buyers = vec![Buyer::new("1", 1, WHOLE, best(1)), Buyer::new("1", 2, WHOLE, best(1))];
    Scenario::new("one buyer's limit while Redis forgets", 1, buyers).budget(Budget {
        losses: 1,
        loads: 1,
        ..Budget::default()
    })
}

/// Two buyers name the same attendee.
#[must_use]
pub fn one_attendee() -> Scenario {
    let buyers = vec![
        Buyer::new("1", 1, WHOLE, best(1)).naming("ada").cancels(),
        Buyer::new("2", 2, WHOLE, best(1)).naming("ada").requests(2),
    ];
    Scenario::new("one attendee for two buyers", 2, buyers)
        .budget(Budget { faults: 1, ..Budget::default() })
}

/// An order is refunded whole while another buyer wants its seat, and anything may fail once.
#[must_use]
pub fn refund_against_another_buyer() -> Scenario {
    let buyers = vec![paid().refunded(&[(1, None)]), second().requests(2).pays(&[PRICE_MINOR])];
    Scenario::new("refund against another buyer", 2, buyers)
        .with_paid(0)
        .delivering(REFUND)
        .budget(Budget { callbacks: 1, faults: 1, ..Budget::default() })
}

/// The same ticket of an order is refunded twice, with one number after the other.
#[must_use]
pub fn one_ticket_twice() -> Scenario {
    let buyer = paid_for_two().refunded(&[(1, Some(0)), (2, Some(0)), (2, None)]);
    Scenario::new("one ticket twice", 2, vec![buyer]).with_paid(0)
}

/// An order is refunded as soon as it is paid, while the callback that paid it is still selling its seat, and
/// another buyer takes that.
#[must_use]
pub fn refund_against_a_late_sale() -> Scenario {
    let buyers = vec![paid().refunded(&[(1, None)]), second()];
    Scenario::new("refund against a late sale", 2, buyers).with_order(0).budget(Budget {
        callbacks: 2,
        sweeps: 1,
        ..Budget::default()
    })
}

/// An order is refunded whole, another buyer takes its seat, and Redis forgets either.
#[must_use]
pub fn refund_against_forgetting() -> Scenario {
    let buyers = vec![paid().refunded(&[(1, None)]), second()];
    Scenario::new("refund against forgetting", 2, buyers).with_paid(0).budget(Budget {
        losses: 1,
        sweeps: 1,
        ..Budget::default()
    })
}

/// Two tickets of an order are refunded by two operators at once, with the same number; the messages that send
/// the money back may come twice.
#[must_use]
pub fn refunds_at_once() -> Scenario {
    let buyer = paid_for_two().refunded(&[(1, Some(0)), (1, Some(1))]);
    Scenario::new("refunds at once", 2, vec![buyer])
        .with_paid(0)
        .delivering(REFUND)
        .budget(Budget { copies: 1, ..Budget::default() })
}

/// The bank takes the money of an order back, while an operator refunds it; the money may be sent back meanwhile.
#[must_use]
pub fn dispute_against_refund() -> Scenario {
    Scenario::new("dispute against refund", 2, vec![paid().refunded(&[(1, None)])])
        .with_paid(0)
        .disputed()
        .delivering(REFUND)
        .budget(Budget { reads: 1, ..Budget::default() })
}

/// Two record the same dispute while an operator refunds the order.
#[must_use]
pub fn disputes_against_refund() -> Scenario {
    Scenario::new("disputes against refund", 2, vec![paid().refunded(&[(1, None)])])
        .with_paid(0)
        .disputed()
        .budget(Budget { reads: 2, ..Budget::default() })
}

/// Two record the same dispute at once.
#[must_use]
pub fn dispute_heard_twice() -> Scenario {
    Scenario::new("dispute heard twice", 2, vec![paid()])
        .with_paid(0)
        .disputed()
        .budget(Budget { reads: 2, ..Budget::default() })
}

/// A dispute is recorded, and anything may fail once; a lost one is sent back by its message.
#[must_use]
pub fn dispute_cut_off() -> Scenario {
    Scenario::new("dispute cut off", 2, vec![paid()])
        .with_paid(0)
        .disputed()
        .delivering(REFUND)
        .budget(Budget { reads: 1, faults: 2, ..Budget::default() })
}

/// The buyer of [`paid`], who gives that ticket for one of the other seat.
fn exchanging(attempt: u16, legs: (u16, u16)) -> Buyer {
    Buyer::of_seat("1", attempt, legs, 1).exchanging(0, 0)
}

/// A ticket is exchanged at the same price while an operator refunds it; messages send money back meanwhile.
#[must_use]
pub fn exchange_against_refund() -> Scenario {
    let buyers = vec![paid().refunded(&[(1, Some(0))]), exchanging(2, WHOLE)];
    Scenario::new("exchange against refund", 1, buyers).with_paid(0).delivering(REFUND)
}

/// A ticket is given for two others at once, at the same price.
#[must_use]
pub fn exchanges_at_once() -> Scenario {
    let buyers = vec![paid(), exchanging(2, (0, 1)), exchanging(3, (1, 2))];
    Scenario::new("exchanges at once", 2, buyers).with_paid(0)
}

/// A ticket is given for a dearer one, whose time runs out while it is paid.
#[must_use]
pub fn exchange_against_expiry() -> Scenario {
    let dearer = exchanging(2, WHOLE).costing(TWO_TICKETS_MINOR).pays(&[TWO_TICKETS_MINOR]);
    Scenario::new("exchange against expiry", 1, vec![paid(), dearer])
        .with_paid(0)
        .with_order(1)
        .delivering(EXPIRY)
        .until(&[PAST_THE_DEADLINE])
        .budget(Budget { callbacks: 1, ..Budget::default() })
}

/// A ticket is given for a dearer one, which is paid while an operator refunds the old one.
#[must_use]
pub fn dearer_exchange_against_refund() -> Scenario {
    let dearer = exchanging(2, WHOLE).costing(TWO_TICKETS_MINOR).pays(&[TWO_TICKETS_MINOR]);
    Scenario::new("dearer exchange against refund", 1, vec![paid().refunded(&[(1, None)]), dearer])
        .with_paid(0)
        .with_order(1)
        .delivering(REFUND)
        .budget(Budget { callbacks: 1, ..Budget::default() })
}

/// One of two tickets is given for another at the same price, and an operator refunds the order after that.
#[must_use]
pub fn exchange_before_refund() -> Scenario {
    let two = Buyer::new("1", 1, ONE_LEG, best(2)).pays(&[TWO_TICKETS_MINOR]);
    let buyers = vec![two.refunded(&[(2, None)]), exchanging(2, (1, 2))];
    Scenario::new("exchange before refund", 2, buyers).with_paid(0).delivering(REFUND)
}

/// A ticket is exchanged at the same price, and anything may fail once.
#[must_use]
pub fn exchange_cut_off() -> Scenario {
    let buyers = vec![paid(), exchanging(2, WHOLE).requests(2)];
    Scenario::new("exchange cut off", 1, buyers)
        .with_paid(0)
        .budget(Budget { faults: 1, ..Budget::default() })
}

/// A ticket is exchanged at the same price while the bank takes back what has paid it, and somebody records that.
#[must_use]
pub fn exchange_against_dispute() -> Scenario {
    Scenario::new("exchange against dispute", 1, vec![paid(), exchanging(2, WHOLE)])
        .with_paid(0)
        .disputed()
        .budget(Budget { reads: 1, ..Budget::default() })
}

/// The wallet that has the price of one ticket, and a buyer with two orders.
fn with_a_wallet(name: &'static str, buyers: Vec<Buyer>) -> Scenario {
    let of_both = (0..buyers.len()).fold(Scenario::new(name, 2, buyers), Scenario::with_order);
    of_both.with_wallet(0)
}

/// Two orders are paid from a wallet at once that has the price of one, each asked for twice, and anything may fail once.
#[must_use]
pub fn one_wallet_twice() -> Scenario {
    let of_seat = |attempt, seat| Buyer::of_seat("1", attempt, ONE_LEG, seat).from_wallet(2);
    with_a_wallet("one wallet twice", vec![of_seat(1, 0), of_seat(2, 1)])
        .budget(Budget { faults: 1, ..Budget::default() })
}

/// An order is paid from the wallet, twice, while its time runs out, and anything may fail once.
#[must_use]
pub fn wallet_against_expiry() -> Scenario {
    with_a_wallet("wallet against expiry", vec![first().from_wallet(2)])
        .until(&[PAST_THE_DEADLINE])
        .delivering(EXPIRY)
        .budget(Budget { faults: 1, ..Budget::default() })
}

/// An order is paid from the wallet and at the provider at once, and anything may fail once.
#[must_use]
pub fn wallet_against_payment() -> Scenario {
    with_a_wallet("wallet against payment", vec![first().from_wallet(1).pays(&[PRICE_MINOR])])
        .delivering(REFUND)
        .budget(Budget { callbacks: 1, faults: 1, ..Budget::default() })
}

/// An order that is paid from the wallet is refunded, by a message that comes twice, and anything may fail once.
#[must_use]
pub fn wallet_refunded() -> Scenario {
    let buyer = first().from_wallet(1).refunded(&[(1, None)]);
    with_a_wallet("wallet refunded", vec![buyer]).delivering(REFUND).budget(Budget {
        copies: 1,
        faults: 1,
        ..Budget::default()
    })
}

/// An order is paid from a wallet while the bank takes back what has filled it, and somebody records that.
#[must_use]
pub fn top_up_against_dispute() -> Scenario {
    let buyers = vec![
        Buyer::of_seat("1", 1, ONE_LEG, 0).tops_up().pays(&[PRICE_MINOR]),
        Buyer::of_seat("1", 2, ONE_LEG, 0).from_wallet(1),
    ];
    Scenario::new("top-up against dispute", 2, buyers)
        .with_paid(0)
        .with_order(1)
        .disputed()
        .delivering(REFUND)
        .budget(Budget { reads: 1, ..Budget::default() })
}

/// Every scenario that is explored whole in seconds.
#[must_use]
pub fn small() -> Vec<Scenario> {
    vec![
        expiry_against_payment(),
        payment_listed_late(),
        captures_that_are_read(),
        captures_that_are_read_again(),
        cancel_against_payment(),
        cancel_that_fails(),
        rescue_against_another_buyer(),
        refund(),
        kept_against_expiry(),
        kept_twice(),
        start_against_expiry(),
        expiry_that_comes_twice(),
        close_that_fails(),
        place_against_expiry(),
        two_starts(),
        absent_page(),
        start_that_fails(),
        start_against_cancel(),
        absent_page_against_cancel(),
        two_buyers_for_one_seat(),
        two_buyers_over_legs(),
        forgetting_against_claims(),
        forgetting_against_payment(),
        reload_against_traffic(),
        load_in_parts(),
        tier_lost(),
        limit_over_tiers(),
        duplicates(),
        crash_at_every_step(),
        sweeper_against_traffic(),
        second_and_wrong_payments(),
        limit_against_forgetting(),
        one_attendee(),
        refund_against_another_buyer(),
        one_ticket_twice(),
        refund_against_a_late_sale(),
        refund_against_forgetting(),
        refunds_at_once(),
        dispute_against_refund(),
        dispute_heard_twice(),
        dispute_cut_off(),
        exchange_against_refund(),
        exchanges_at_once(),
        exchange_against_expiry(),
        dearer_exchange_against_refund(),
        exchange_against_dispute(),
        exchange_before_refund(),
        exchange_cut_off(),
        one_wallet_twice(),
        wallet_against_expiry(),
        wallet_against_payment(),
        wallet_refunded(),
        top_up_against_dispute(),
    ]
}

/// Scenarios that take minutes: the same races with more in them.
#[must_use]
pub fn large() -> Vec<Scenario> {
    let named = |name, scenario: Scenario| Scenario { name, ..scenario };
    let more = |scenario: Scenario, change: fn(&mut Budget)| {
        let mut scenario = scenario;
        change(&mut scenario.budget);
        scenario
    };
    let buyers = vec![first().cancels().pays(&[PRICE_MINOR]), second()];
    vec![
        named("large: expiry, payment and its repetition", {
            more(expiry_against_payment(), |budget| budget.callbacks = 2)
        }),
        named("large: expiry and payment while something fails", {
            more(expiry_against_payment(), |budget| (budget.copies, budget.faults) = (0, 1))
        }),
        named("large: a payment listed late while something fails", {
            more(payment_listed_late(), |budget| budget.faults = 1)
        }),
        named("large: a payment listed late and a message that comes twice", {
            more(payment_listed_late(), |budget| budget.copies = 1)
        }),
        named("large: a kept capture and messages that come twice", {
            more(kept_against_expiry(), |budget| budget.copies = 1)
        }),
        named("large: a kept capture and two faults", {
            more(kept_against_expiry(), |budget| budget.faults = 2)
        }),
        named("large: a place against expiry and a callback", {
            more(place_against_expiry(), |budget| budget.callbacks = 1)
        }),
        named("large: disputes against refund", disputes_against_refund()),
        named("large: captures that are read twice", {
            more(captures_that_are_read(), |budget| budget.reads = 2)
        }),
        named("large: captures that are read, their callback and a fault", {
            more(captures_that_are_read(), |budget| (budget.callbacks, budget.faults) = (1, 1))
        }),
        named("large: cancel, payment and a fault", {
            more(cancel_against_payment(), |budget| budget.faults = 1)
        }),
        named("large: cancel, payment and two faults", {
            more(cancel_against_payment(), |budget| budget.faults = 2)
        }),
        named("large: two loaders and live traffic", {
            more(reload_against_traffic(), |budget| budget.loads = 2)
        }),
        named("large: a load in parts while something fails", {
            more(load_in_parts(), |budget| budget.faults = 1)
        }),
        named("large: Redis forgets while something fails", {
            more(forgetting_against_claims(), |budget| budget.faults = 1)
        }),
        named("large: sweeper, payment, cancellation and another buyer", {
            let budget = Budget { callbacks: 1, sweeps: 1, ..Budget::default() };
            let scenario = Scenario::new("", 2, buyers).with_order(0).budget(budget);
            scenario.until(&[PAST_THE_DEADLINE])
        }),
        named("large: two buyers for one seat and two faults", {
            more(two_buyers_for_one_seat(), |budget| budget.faults = 2)
        }),
    ]
}
