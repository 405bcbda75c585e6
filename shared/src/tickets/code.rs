//! The code of a ticket.

use serde::{Deserialize, Serialize};

use super::keys::{NoKey, PublicKeys, TicketKeys, Unverified};
use super::list::RevokedList;
use engine::domain::basics::ids::{SaleId, SeatName, StopId, TierId};
use engine::domain::basics::number::OrderNumber;
use engine::domain::order::{Issue, Order};
use engine::domain::sale::Sale;
use engine::domain::ticket::{NumberedTicket, Serial, TicketNumber};

/// What the header of a code says it is.
const TYPE: &str = "ticket";
/// Most bytes of a code; those of a concert have some 300, and the longest names of a train fit.
pub const MAX_CODE_BYTES: usize = 4096;

/// What a code says. Its members are short, for its picture's sake.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TicketCode {
    /// The deployment that has signed it.
    #[serde(rename = "d")]
    pub deployment: String,
    #[serde(rename = "s")]
    pub sale: SaleId,
    #[serde(rename = "t")]
    pub tier: TierId,
    /// The seat; absent for general admission.
    #[serde(rename = "p", default, skip_serializing_if = "Option::is_none")]
    pub seat: Option<SeatName>,
    /// The stops of the journey; absent for a concert.
    #[serde(rename = "l", default, skip_serializing_if = "Option::is_none")]
    pub journey: Option<(StopId, StopId)>,
    #[serde(rename = "o")]
    pub order: OrderNumber,
    /// The ticket of the order.
    #[serde(rename = "n")]
    pub ticket: TicketNumber,
    /// The issue of the ticket.
    #[serde(rename = "i")]
    pub issue: Issue,
}

/// Why a text is no code of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeDefect {
    /// It is no code.
    #[error("it is no ticket code")]
    Malformed,
    /// It is signed with a key that is none of these: another deployment's, or one that was replaced.
    #[error("it is signed with another deployment's key ({0})")]
    OtherKey(String),
    /// It is not what its key has signed.
    #[error("its signature does not fit")]
    BadSignature,
    /// It is signed with one of these keys, for another deployment that has the same.
    #[error("it is a ticket of another deployment ({0})")]
    OtherDeployment(String),
}

impl From<Unverified> for CodeDefect {
    fn from(unverified: Unverified) -> Self {
        match unverified {
            Unverified::Malformed => Self::Malformed,
            Unverified::OtherKey(kid) => Self::OtherKey(kid),
            Unverified::Forged => Self::BadSignature,
        }
    }
}

/// What a list says of a ticket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    Good,
    /// It was refunded, or its sale was cancelled.
    Revoked,
    /// It was issued anew since.
    OldIssue,
    /// The list is of another sale, or its pages do not reach as far.
    NotListed,
}

impl TicketCode {
    /// What the code of a ticket says. `sale` is the order's, whose stops give its journey their names.
    #[must_use]
    pub fn new(
        deployment: &str,
        sale: &Sale,
        order: &Order,
        NumberedTicket { number, line, ticket }: &NumberedTicket<'_>,
    ) -> Self {
        let has_seats =
            sale.tier(&line.tier).is_none_or(|tier| !tier.layout.is_general_admission());
        let stops = sale.stop(line.legs.from()).zip(sale.stop(line.legs.to()));
        Self {
            deployment: deployment.to_owned(),
            sale: order.sale.clone(),
            tier: line.tier.clone(),
            seat: has_seats.then(|| ticket.name.clone()),
            journey: stops.map(|(from, to)| (from.clone(), to.clone())),
            order: order.number,
            ticket: *number,
            issue: ticket.issue,
        }
    }

    /// What it stands for.
    #[must_use]
    pub fn serial(&self) -> Serial {
        Serial { order: self.order, ticket: self.ticket, issue: self.issue }
    }

    /// What the pages of a list say of it.
    #[must_use]
    pub fn standing(&self, pages: &[RevokedList]) -> Standing {
        let of_sale = pages.iter().filter(|page| page.sale == self.sale);
        let Some(page) = of_sale.clone().find(|page| page.reaches(self.order)) else {
            return Standing::NotListed;
        };
        match page.lowest_good(self.order, self.ticket) {
            None => Standing::Revoked,
            Some(lowest) if self.issue < lowest => Standing::OldIssue,
            Some(_) => Standing::Good,
        }
    }
}

impl TicketKeys {
    /// Signs a code: the same for the same ticket and issue, for Ed25519 leaves nothing to chance.
    ///
    /// # Errors
    /// Returns [`NoKey`] if there is none.
    pub fn sign_code(&self, code: &TicketCode) -> Result<String, NoKey> {
        self.signed(TYPE, code)
    }
}

impl PublicKeys {
    /// Reads a code that this deployment has signed.
    ///
    /// # Errors
    /// Returns the first [`CodeDefect`].
    pub fn check_code(&self, code: &str) -> Result<TicketCode, CodeDefect> {
        if code.len() > MAX_CODE_BYTES {
            return Err(CodeDefect::Malformed);
        }
        let read: TicketCode = self.verified(code, TYPE)?;
        if read.deployment != self.deployment {
            return Err(CodeDefect::OtherDeployment(read.deployment));
        }
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::super::TicketSecrets;
    use super::*;
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use serde_json::{Value, json};

    const SECRET: &str = "0123456789abcdefghijklmnopqrstuv";
    const OTHER: &str = "another-secret-of-another-engine";

    fn keys(deployment: &str, secrets: &[&str]) -> TicketKeys {
        let secrets = secrets.iter().map(|text| (*text).to_owned()).collect();
        TicketKeys::new(deployment, &TicketSecrets::new(secrets).unwrap())
    }

    fn code() -> TicketCode {
        TicketCode {
            deployment: "prod-onsale".to_owned(),
            sale: SaleId::new("g35-2026-11-21").unwrap(),
            tier: TierId::new("second").unwrap(),
            seat: Some(SeatName::new("01-1A").unwrap()),
            journey: Some((StopId::new("VNP").unwrap(), StopId::new("NGH").unwrap())),
            order: "169218430493097984".parse().unwrap(),
            ticket: TicketNumber::FIRST,
            issue: Issue::FIRST,
        }
    }

    #[test]
    fn a_code_is_read_as_it_was_signed_and_always_the_same() {
        let keys = keys("prod-onsale", &[SECRET, OTHER]);
        let signed = keys.sign_code(&code()).unwrap();
        assert_eq!(keys.sign_code(&code()).unwrap(), signed);
        assert_eq!(keys.public().check_code(&signed), Ok(code()));
        assert_eq!(signed.len(), 316, "{signed}");
        let parts: Vec<&str> = signed.split('.').collect();
        let says = |part: &str| -> Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        let kid = &keys.public().keys[0].kid;
        assert_eq!(says(parts[0]), json!({ "alg": "EdDSA", "kid": kid, "typ": "ticket" }));
        let body = json!({ "d": "prod-onsale", "s": "g35-2026-11-21", "t": "second", "p": "01-1A",
            "l": ["VNP", "NGH"], "o": "169218430493097984", "n": 1, "i": 1 });
        assert_eq!(says(parts[1]), body);
        // Of a concert with general admission.
        let short = TicketCode { seat: None, journey: None, ..code() };
        assert_eq!(keys.public().check_code(&keys.sign_code(&short).unwrap()), Ok(short));
    }

    #[test]
    fn a_code_with_any_bit_changed_is_refused() {
        let keys = keys("prod-onsale", &[SECRET]);
        let signed = keys.sign_code(&code()).unwrap();
        for place in 0..signed.len() {
            for bit in 0..8 {
                let mut bytes = signed.clone().into_bytes();
                bytes[place] ^= 1 << bit;
                let Ok(changed) = String::from_utf8(bytes) else { continue };
                let checked = keys.public().check_code(&changed);
                assert!(checked.is_err(), "bit {bit} of letter {place}: {checked:?}");
            }
        }
    }

    #[test]
    fn each_defect_has_its_name() {
        let ours = keys("prod-onsale", &[SECRET]);
        let signed = ours.sign_code(&code()).unwrap();
        let check = |text: &str| ours.public().check_code(text);
        let foreign = keys("prod-onsale", &[OTHER]);
        let kid = foreign.public().keys[0].kid.clone();
        assert_eq!(check(&foreign.sign_code(&code()).unwrap()), Err(CodeDefect::OtherKey(kid)));
        let same_key = TicketCode { deployment: "dev-onsale".to_owned(), ..code() };
        let other = Err(CodeDefect::OtherDeployment("dev-onsale".to_owned()));
        assert_eq!(check(&ours.sign_code(&same_key).unwrap()), other);
        // Another ticket under this signature.
        let parts: Vec<&str> = signed.split('.').collect();
        let second = json!({ "d": "prod-onsale", "s": "g35-2026-11-21", "t": "second", "o": "1",
            "n": 2, "i": 1 });
        let second = URL_SAFE_NO_PAD.encode(second.to_string());
        let swapped = format!("{}.{second}.{}", parts[0], parts[2]);
        assert_eq!(check(&swapped), Err(CodeDefect::BadSignature));
        // What our own key has signed, and is no ticket.
        let not_a_code = ours.signed("ticket", &json!({ "d": "prod-onsale", "n": 0 })).unwrap();
        let a_list = ours.signed("revoked", &code()).unwrap();
        let no_type = ours.signed("", &code()).unwrap();
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","typ":"ticket"}"#);
        let unsigned = format!("{none}.{}.", parts[1]);
        let long = "a".repeat(MAX_CODE_BYTES + 1);
        for text in [&not_a_code, &a_list, &no_type, &unsigned, &long, "", "alice", "a.b.c", "a.b"]
        {
            assert_eq!(check(text), Err(CodeDefect::Malformed), "{text}");
        }
        // While a key is replaced both are accepted, and afterwards one.
        let both = keys("prod-onsale", &[OTHER, SECRET]);
        assert_eq!(both.public().check_code(&signed), Ok(code()));
    }
}
