//! Wallets: a fact of an order changes its buyer's wallet in the transaction that adds the fact.
//!
//! A wallet lies in its buyer's partition of the table of orders. Changes are added to the balance, which is never
//! overwritten: a credit needs no condition, and a debit only the condition that the balance is enough. So no change
//! reads the wallet first.

use super::{DynamoOrders, Part, Plan};
use crate::dynamodb::expressions::{keyed, put_new, update};
use crate::dynamodb::items::{Fields, Item, add, number, orders_key, text};
use crate::dynamodb::ledger::{ADD_BALANCE, added, balance};
use crate::dynamodb::tables;
use engine::domain::basics::ids::UserId;
use engine::domain::basics::money::Currency;
use engine::domain::basics::number::Gene;
use engine::domain::ledger::Balance;
use engine::domain::ledger::wallet::{WalletChange, WalletEntry, WalletEntryName, WalletStatement};
use engine::domain::order::Order;
use engine::ports::Stored;

fn key(user: &UserId, sk: String) -> Item {
    orders_key(Gene::from_text(user.as_str()), sk)
}

fn entry_item(order: &Order, entry: &WalletEntry) -> Item {
    let sk = tables::wallet_entry_key(&order.user, order.total.currency, &entry.name);
    let mut written = key(&order.user, sk);
    add(
        &mut written,
        [
            ("order", text(entry.name.order)),
            ("sale", text(&entry.sale)),
            ("kind", text(entry.name.kind.as_str())),
            ("amount_minor", number(entry.change.amount_minor)),
            ("at_ms", number(entry.at.ms())),
        ],
    );
    if let Some(refund) = entry.name.refund {
        add(&mut written, [("refund", number(refund.get()))]);
    }
    if entry.change.is_gone {
        add(&mut written, [("gone", number(1))]);
    }
    written
}

impl DynamoOrders {
    /// What an order, as it shall be, changes of its buyer's wallet with its last fact.
    pub(super) fn wallet_moves<'a>(&self, order: &Order) -> Stored<Plan<'a>> {
        let Some(entry) = order.wallet_entry_now() else { return Ok(Vec::new()) };
        let mut with = added(entry.change.entry());
        let condition = match entry.change.needs() {
            Some(needs) => {
                with.push(("needs", number(needs)));
                "#balance_minor >= :needs"
            }
            None => "",
        };
        let wallet = key(&order.user, tables::wallet_key(&order.user, order.total.currency));
        Ok(vec![
            (Part::Wallet, update(self.orders(), wallet, ADD_BALANCE, condition, with)?),
            (Part::Wallet, put_new(self.orders(), entry_item(order, &entry))?),
        ])
    }

    pub(super) async fn wallet(&self, user: &UserId, currency: Currency) -> Stored<Balance> {
        let found = self.db.get(self.orders(), key(user, tables::wallet_key(user, currency)));
        found.await?.map_or(Ok(Balance::default()), |item| balance(&Fields::from_item(&item)))
    }

    pub(super) async fn statement(&self, user: &UserId) -> Stored<WalletStatement> {
        let query = keyed(
            self.db.client().query().table_name(self.orders()),
            "#gene = :gene AND begins_with(#sk, :wallets)",
            [
                ("gene", number(Gene::from_text(user.as_str()).get())),
                ("wallets", text(tables::wallet_prefix(user))),
            ],
        );
        let mut statement = WalletStatement::default();
        for item in self.db.query(query.consistent_read(true), usize::MAX).await? {
            let fields = Fields::from_item(&item);
            let sk: String = fields.text("sk")?;
            let (_, currency, entry) =
                tables::wallet_of_key(&sk).ok_or_else(|| fields.broken("sk", "is no wallet's"))?;
            let wallet = statement.wallets.entry(currency).or_default();
            match entry {
                None => wallet.balance = balance(&fields)?,
                Some(name) => wallet.entries.push(read_entry(&fields, name)?),
            }
        }
        Ok(statement.sorted())
    }
}

/// An entry as it was written.
fn read_entry(fields: &Fields<'_>, name: WalletEntryName) -> Stored<WalletEntry> {
    let change = WalletChange {
        amount_minor: fields.number("amount_minor")?,
        is_gone: fields.maybe_number::<u8>("gone")?.is_some(),
    };
    Ok(WalletEntry { name, sale: fields.text("sale")?, change, at: fields.time("at_ms")? })
}
