//! The terms of a sale that its orders keep as they were when the order was made: merchant, points and refunds.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::file::is_zero;
use crate::domain::basics::ids::MerchantId;
use crate::domain::basics::money::MinorUnits;
use crate::domain::basics::time::Timestamp;

/// Basis points of the whole: ten thousand are all of it.
pub const BASIS_POINTS: u16 = 10_000;

/// Whose a sale's money is. An order keeps what its sale said when it was made.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a merchant, which is an object")]
pub struct MerchantTerms {
    /// The merchant that sells.
    pub merchant: MerchantId,
    /// What the platform keeps of what the merchant keeps, in hundredths of a per cent, rounded down to a minor
    /// unit.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(max = 10_000))]
    pub commission_basis_points: u16,
    /// What its buyers are given for what they pay, as their sale says; absent: nothing.
    #[serde(skip)]
    pub points: Option<PointsTerms>,
}

impl MerchantTerms {
    /// Those of a sale that names no merchant: the deployment's own, all of whose money is its own.
    #[must_use]
    pub fn house() -> Self {
        Self { merchant: MerchantId::house(), commission_basis_points: 0, points: None }
    }

    /// What the platform keeps of an amount.
    #[must_use]
    pub fn commission(&self, amount: MinorUnits) -> MinorUnits {
        let points = i128::from(amount.0) * i128::from(self.commission_basis_points);
        // At most the amount itself, as the points are at most the whole.
        MinorUnits(i64::try_from(points / i128::from(BASIS_POINTS)).unwrap_or(amount.0))
    }
}

/// What a sale gives for what is paid. An order keeps what its sale said when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "what is given for what is paid, which is an object")]
pub struct PointsTerms {
    /// The amount for which it is given, in minor units. Less than a whole one gives nothing.
    pub per_minor: NonZeroU32,
    /// The points for each such amount.
    #[serde(default)]
    pub points: u16,
    /// The growth for each such amount.
    #[serde(default)]
    pub growth: u16,
}

/// Until when a buyer may give a ticket back, and what it costs: the terms of the moment of buying.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RefundTerms {
    /// Until when, exclusive.
    pub until: Timestamp,
    /// What is kept of the price of each ticket.
    pub fee_minor: MinorUnits,
}
