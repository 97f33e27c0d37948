//! Money: what requests cost, exactly, and by which price.

use crate::model::Usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};
use std::str::FromStr;

/// Parts of a US dollar that amounts are counted in.
const PICO: u64 = 1_000_000_000_000;
/// Digits after the point of an exact amount.
const DIGITS: usize = 12;

/// An amount of US dollars, exact to a millionth of a millionth, and at most some 18 million. Sums stop there.
///
/// In records it is a decimal text such as `"0.0123"`, so that nothing is lost on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost(u64);

/// A text that is no amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an amount of dollars: write it like 5 or 0.25, with at most {DIGITS} digits after the point")]
pub struct CostError;

impl Cost {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// Whole cents.
    pub const fn from_cents(cents: u64) -> Self {
        Self(cents.saturating_mul(PICO / 100))
    }

    /// A part of it, rounded up; all of it for one or less.
    #[must_use]
    pub fn each_of(self, parts: u64) -> Self {
        Self(self.0.div_ceil(parts.max(1)))
    }

    /// The sum, or the largest amount.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// The exact decimal, without needless zeros: `0.0123`.
    #[must_use]
    pub fn exact(self) -> String {
        let text = format!("{}.{:0DIGITS$}", self.0 / PICO, self.0 % PICO);
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    }
}

/// As people read it: to the cent, and below a dollar with the digits that say something.
impl fmt::Display for Cost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = match self.0 {
            PICO.. => 2,
            100_000_000.. => 4,
            _ => 6,
        };
        let scale = 10u64.pow(digits);
        let unit = PICO / scale;
        let rounded = self.0.saturating_add(unit / 2) / unit;
        let part = format!("{:0width$}", rounded % scale, width = digits as usize);
        let part = format!("{:0<2}", part.trim_end_matches('0'));
        write!(f, "${}.{part}", rounded / scale)
    }
}

impl FromStr for Cost {
    type Err = CostError;

    fn from_str(text: &str) -> Result<Self, CostError> {
        let text = text.strip_prefix('$').unwrap_or(text);
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
        if (whole.is_empty() && part.is_empty()) || part.len() > DIGITS || !plain(whole) || !plain(part) {
            return Err(CostError);
        }
        let number = |digits: &str| {
            if digits.is_empty() {
                Ok(0)
            } else {
                digits.parse::<u64>().map_err(|_| CostError)
            }
        };
        let pico = number(whole)?.checked_mul(PICO).ok_or(CostError)?;
        let part = number(&format!("{part:0<DIGITS$}"))?;
        pico.checked_add(part).map(Self).ok_or(CostError)
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.saturating_add(other)
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

impl Sum for Cost {
    fn sum<I: Iterator<Item = Self>>(costs: I) -> Self {
        costs.fold(Self::ZERO, Self::saturating_add)
    }
}

impl Serialize for Cost {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.exact())
    }
}

impl<'de> Deserialize<'de> for Cost {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What a million tokens of each kind cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rates {
    /// Read.
    pub input: Cost,
    /// Read from the provider's cache.
    pub cached: Cost,
    /// Written to the provider's cache.
    pub write: Cost,
    /// Written, reasoning included.
    pub output: Cost,
}

/// The price of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// What is paid as a rule.
    #[serde(flatten)]
    pub rates: Rates,
    /// What is paid for everything in a request that reads more than so many tokens, where that is dearer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<(u64, Rates)>,
}

impl Price {
    /// Nothing: a model on one's own machine.
    pub const FREE: Self = Self {
        rates: Rates {
            input: Cost::ZERO,
            cached: Cost::ZERO,
            write: Cost::ZERO,
            output: Cost::ZERO,
        },
        long: None,
    };

    /// A price that is the same however long a request is.
    pub const fn flat(rates: Rates) -> Self {
        Self { rates, long: None }
    }

    /// Whether nothing has to be paid.
    pub fn is_free(&self) -> bool {
        *self == Self::FREE
    }

    /// What one request costs, rounded up to what can be counted.
    pub fn of(&self, usage: Usage) -> Cost {
        let rates = match self.long {
            Some((above, long)) if usage.input > above => long,
            _ => self.rates,
        };
        let cached = usage.cached_input.min(usage.input);
        let write = usage.cache_write.min(usage.input - cached);
        let read = usage.input - cached - write;
        let parts = [
            (read, rates.input),
            (cached, rates.cached),
            (write, rates.write),
            (usage.output, rates.output),
        ];
        let sum = parts.into_iter().fold(0u128, |sum, (tokens, rate)| {
            sum.saturating_add(u128::from(tokens) * u128::from(rate.0))
        });
        Cost(u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX))
    }
}

/// `in=2.50,out=10,cached=0.25,write=2.50`, in US dollars per million tokens. What is cached costs as much as what is
/// read unless it is said, and so does what is written to a cache.
impl FromStr for Price {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (mut input, mut output, mut cached, mut write) = (None, None, None, None);
        for part in text.split(',') {
            let (name, amount) = part
                .split_once('=')
                .ok_or("write it as in=2.50,out=10, with cached= and write= where they differ from in=")?;
            let place = match name.trim() {
                "in" => &mut input,
                "out" => &mut output,
                "cached" => &mut cached,
                "write" => &mut write,
                other => return Err(format!("{other:?} is none of in, out, cached, write")),
            };
            let amount: Cost = amount
                .trim()
                .parse()
                .map_err(|error: CostError| error.to_string())?;
            if place.replace(amount).is_some() {
                return Err(format!("{} is given twice", name.trim()));
            }
        }
        let input = input.ok_or("in= is missing: dollars per million tokens read")?;
        Ok(Self::flat(Rates {
            input,
            cached: cached.unwrap_or(input),
            write: write.unwrap_or(input),
            output: output.ok_or("out= is missing: dollars per million tokens written")?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn usd(text: &str) -> Cost {
        text.parse().unwrap()
    }

    fn usage(input: u64, cached_input: u64, cache_write: u64, output: u64) -> Usage {
        Usage {
            input,
            cached_input,
            cache_write,
            output,
            ..Usage::default()
        }
    }

    #[test]
    fn amounts_are_read_exactly_or_not_at_all() {
        for (text, exact) in [
            ("5", "5"),
            ("$5.00", "5"),
            (".25", "0.25"),
            ("0.000000000001", "0.000000000001"),
            ("12.", "12"),
        ] {
            assert_eq!(usd(text).exact(), exact, "{text}");
        }
        for text in [
            "",
            "$",
            ".",
            "-1",
            "+1",
            "1e3",
            "1,5",
            "0.0000000000001",
            "99999999999",
            "nan",
            " 1",
        ] {
            assert_eq!(text.parse::<Cost>(), Err(CostError), "{text}");
        }
    }

    #[test]
    fn amounts_are_shown_so_that_they_say_something() {
        for (amount, shown) in [
            ("0", "$0.00"),
            ("5", "$5.00"),
            ("12.3456", "$12.35"),
            ("0.0123", "$0.0123"),
            ("0.5", "$0.50"),
            ("0.99996", "$1.00"),
            ("0.00456", "$0.0046"),
            ("0.0000004", "$0.00"),
            ("0.000012", "$0.000012"),
        ] {
            assert_eq!(usd(amount).to_string(), shown, "{amount}");
        }
    }

    #[test]
    fn each_kind_of_token_has_its_own_price() {
        let price: Price = "in=3,out=15,cached=0.3,write=3.75".parse().unwrap();
        // 1 000 read, 180 000 from the cache, 10 000 into it, 500 written.
        let cost = price.of(usage(191_000, 180_000, 10_000, 500));
        assert_eq!(cost, usd("0.102"));
        let plain: Price = "out=2, in=1".parse().unwrap();
        assert_eq!((plain.rates.cached, plain.rates.write), (usd("1"), usd("1")));
        let parts_beyond_the_whole = usage(10, 100, 100, 0);
        assert_eq!(plain.of(parts_beyond_the_whole), usd("0.00001"));
        for text in [
            "",
            "in=1",
            "out=1",
            "in=1,out=x",
            "in=1,out=1,in=2",
            "in=1,out=1,all=3",
        ] {
            assert!(text.parse::<Price>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_long_request_pays_its_own_price_for_all_of_it() {
        let rates = |input, output| Rates {
            input: usd(input),
            cached: usd(input),
            write: usd(input),
            output: usd(output),
        };
        let price = Price {
            long: Some((200_000, rates("4", "18"))),
            ..Price::flat(rates("2", "12"))
        };
        assert_eq!(price.of(usage(200_000, 0, 0, 1_000)), usd("0.412"));
        assert_eq!(price.of(usage(200_001, 0, 0, 1_000)), usd("0.818004"));
        let json = serde_json::to_string(&price).unwrap();
        assert_eq!(serde_json::from_str::<Price>(&json).unwrap(), price);
    }

    proptest! {
        /// The oracle counts in integers of another unit, a request at a time and all at once.
        #[test]
        fn sums_are_exact(requests in prop::collection::vec((0u64..2_000_000, 0u64..2_000_000, 0u64..200_000), 0..50),
                          input in 0u64..100_000_000, cached in 0u64..100_000_000, output in 0u64..500_000_000) {
            // Micro-dollars per million tokens.
            let micro = |n: u64| usd(&format!("{}.{:06}", n / 1_000_000, n % 1_000_000));
            let price = Price::flat(Rates { input: micro(input), cached: micro(cached), write: micro(input), output: micro(output) });
            let mut expected = 0u128;
            let mut sum = Cost::ZERO;
            for (read, hit, written) in requests {
                let hit = hit.min(read);
                sum += price.of(usage(read, hit, 0, written));
                expected += u128::from(read - hit) * u128::from(input) + u128::from(hit) * u128::from(cached)
                    + u128::from(written) * u128::from(output);
            }
            prop_assert_eq!(u128::from(sum.0), expected);
        }

        #[test]
        fn what_is_written_down_is_read_again(pico in any::<u64>()) {
            let cost = Cost(pico);
            prop_assert_eq!(cost.exact().parse::<Cost>(), Ok(cost));
            let json = serde_json::to_string(&cost).unwrap();
            prop_assert_eq!(serde_json::from_str::<Cost>(&json).unwrap(), cost);
            prop_assert!(cost.to_string().starts_with('$'));
        }
    }
}
