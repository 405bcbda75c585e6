//! Numbers within an order: the attempts and the refunds of an order, among others, are numbered from 1 on.

/// Declares the number of something within its order, from 1 to `$most`, and the error of a number that none has.
macro_rules! numbered_within_order {
    ($(#[$doc:meta])* $name:ident, $most:ident, $(#[$error_doc:meta])* $error:ident, $rule:literal) => {
        $(#[$doc])*
        #[derive(
            Debug,
            Clone,
            Copy,
            PartialEq,
            Eq,
            PartialOrd,
            Ord,
            Hash,
            serde::Serialize,
            serde::Deserialize,
            schemars::JsonSchema,
        )]
        #[serde(try_from = "u8", into = "u8")]
        #[schemars(inline)]
        pub struct $name(#[schemars(range(min = 1, max = $most))] u8);

        $(#[$error_doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
        #[error($rule)]
        pub struct $error;

        impl $name {
            /// The first one of an order.
            pub const FIRST: Self = Self(1);

            /// The number itself.
            #[must_use]
            pub const fn get(self) -> u8 {
                self.0
            }
        }

        impl TryFrom<u8> for $name {
            type Error = $error;
            fn try_from(number: u8) -> Result<Self, $error> {
                (1..=$most).contains(&number).then_some(Self(number)).ok_or($error)
            }
        }

        impl From<$name> for u8 {
            fn from(number: $name) -> Self {
                number.0
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

pub(crate) use numbered_within_order;
