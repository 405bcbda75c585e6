//! The webhooks in DynamoDB: one item each, in one partition beside the sales.

use std::str::FromStr as _;

use super::dynamo::Dynamo;
use super::expressions::keyed;
use super::items::{Fields, Item, item, number, text};
use super::tables::WEBHOOKS;
use crate::events::{SecretName, Webhook, WebhookUrl};
use engine::domain::basics::ids::{SaleId, SubscriberId};
use engine::domain::ledger::subscriber::Wishes;
use engine::domain::order::fact::FactKind;
use engine::ports::Stored;

/// The webhooks, in DynamoDB.
#[derive(Debug, Clone)]
pub struct DynamoWebhooks {
    db: Dynamo,
}

fn webhook_key(id: &SubscriberId) -> Item {
    item([("pk", text(WEBHOOKS)), ("sk", text(id))])
}

/// Names with commas between, as none of them has one.
fn list(names: impl Iterator<Item = impl ToString>) -> String {
    names.map(|name| name.to_string()).collect::<Vec<_>>().join(",")
}

fn webhook_item(webhook: &Webhook) -> Item {
    let Webhook { id, url, wishes: Wishes { kinds, sales }, secret, former, since } = webhook;
    let mut written = webhook_key(id);
    written.extend(item([
        ("url", text(url)),
        ("kinds", text(list(kinds.iter().map(|kind| kind.as_str())))),
        ("sales", text(list(sales.iter()))),
        ("secret_key", text(&secret.key)),
        ("secret_generation", number(secret.generation)),
        ("since_ms", number(since.ms())),
    ]));
    if let Some((former, until)) = former {
        written.extend(item([
            ("former_key", text(&former.key)),
            ("former_generation", number(former.generation)),
            ("former_until_ms", number(until.ms())),
        ]));
    }
    written
}

fn read_webhook(item: &Item) -> Stored<Webhook> {
    let fields = Fields::from_item(item);
    let url: String = fields.text("url")?;
    let url = WebhookUrl::from_str(&url).map_err(|_| fields.broken("url", "is no address"))?;
    let names = |name: &'static str| -> Stored<Vec<String>> {
        let all: String = fields.text(name)?;
        Ok(all.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect())
    };
    let kind = |name: String| {
        let known = FactKind::ALL.into_iter().find(|kind| kind.as_str() == name);
        known.ok_or_else(|| fields.broken("kinds", "has one that is none"))
    };
    let sale = |name: String| {
        SaleId::new(name).map_err(|_| fields.broken("sales", "has one that is none"))
    };
    let former: Option<String> = fields.maybe_text("former_key")?;
    let former = match former {
        Some(key) => {
            let name = SecretName { key, generation: fields.number("former_generation")? };
            Some((name, fields.time("former_until_ms")?))
        }
        None => None,
    };
    Ok(Webhook {
        id: fields.text("sk")?,
        url,
        wishes: Wishes {
            kinds: names("kinds")?.into_iter().map(kind).collect::<Stored<_>>()?,
            sales: names("sales")?.into_iter().map(sale).collect::<Stored<_>>()?,
        },
        secret: SecretName {
            key: fields.text("secret_key")?,
            generation: fields.number("secret_generation")?,
        },
        former,
        since: fields.time("since_ms")?,
    })
}

impl DynamoWebhooks {
    /// The webhooks behind a client.
    #[must_use]
    pub fn new(db: Dynamo) -> Self {
        Self { db }
    }

    fn table(&self) -> &str {
        &self.db.tables().sales
    }

    /// Every webhook, strongly consistent.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn all(&self) -> Stored<Vec<Webhook>> {
        let query = keyed(
            self.db.client().query().table_name(self.table()),
            "#pk = :pk",
            [("pk", text(WEBHOOKS))],
        );
        let found = self.db.query(query.consistent_read(true), usize::MAX).await?;
        found.iter().map(read_webhook).collect()
    }

    /// One webhook, strongly consistent.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn get(&self, id: &SubscriberId) -> Stored<Option<Webhook>> {
        let found = self.db.get(self.table(), webhook_key(id)).await?;
        found.as_ref().map(read_webhook).transpose()
    }

    /// Writes a webhook, in place of one of its id.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn put(&self, webhook: &Webhook) -> Stored<()> {
        let put = self.db.client().put_item().table_name(self.table());
        let put = put.set_item(Some(webhook_item(webhook)));
        self.db.write(|| put.clone().send()).await?;
        Ok(())
    }

    /// Deletes a webhook.
    ///
    /// # Errors
    /// As the [ports](engine::ports).
    pub async fn remove(&self, id: &SubscriberId) -> Stored<()> {
        let delete = self.db.client().delete_item().table_name(self.table());
        self.db.delete(delete.set_key(Some(webhook_key(id)))).await
    }
}

#[cfg(test)]
mod tests {
    use engine::domain::basics::time::Timestamp;

    use super::*;

    #[test]
    fn a_webhook_is_read_as_it_was_written() {
        let name = |generation| SecretName { key: "k1".to_owned(), generation };
        let [since, until] = [1, 9].map(Timestamp::from_ms);
        let plain = Webhook {
            id: SubscriberId::new("erp").unwrap(),
            url: WebhookUrl::from_str("https://erp.example/hooks").unwrap(),
            wishes: Wishes::default(),
            secret: name(1),
            former: None,
            since,
        };
        let full = Webhook {
            wishes: Wishes {
                kinds: [FactKind::Paid, FactKind::Refunded].into(),
                sales: ["a", "b"].map(|id| SaleId::new(id).unwrap()).into(),
            },
            secret: name(2),
            former: Some((name(1), until)),
            ..plain.clone()
        };
        for webhook in [plain, full] {
            let mut item = webhook_item(&webhook);
            assert_eq!(read_webhook(&item), Ok(webhook));
            item.insert("kinds".to_owned(), text("paid,lost"));
            assert!(read_webhook(&item).is_err());
        }
    }
}
