//! Bills as providers send them: fetched, and neither unpacked nor read, which [`crate::bills`] does.
//!
//! A file comes from an address that the provider's answer gives, which is believed only as far as the provider's own hosts:
//! whoever could choose another would have us ask anybody for anything.

use hyper::body::Bytes;

use http::Uri;

/// The most bytes of a file as it is sent, packed: of the bill of a day with some 400,000 trades.
pub(crate) const MAX_PACKED_BYTES: usize = 48 * 1024 * 1024;
/// The most bytes of a page of a bill.
pub(super) const MAX_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// What a provider sends that is asked for a bill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RawBill {
    /// It has not made the bill yet.
    NotYet,
    /// There is no bill, as there was no trade that day.
    Nothing,
    /// There is no bill, or none yet.
    Absent,
    /// A page of Stripe's list of balance transactions, as JSON.
    BalancePage(Bytes),
    /// WeChat Pay's bill, packed with gzip, and the SHA-1 of what is in it, in hexadecimal digits.
    Gzip {
        /// The file.
        packed: Bytes,
        /// What its contents hash to.
        sha1: String,
    },
    /// Alipay's bill: an archive of files in GBK.
    Zip(Bytes),
}

/// The address of a file, if it is at the provider: at the address of the API (`base`), or at a host that ends in one of
/// `hosts`, by HTTPS whatever the answer says.
pub(super) fn address(given: &str, base: &str, hosts: &[&str]) -> Option<String> {
    let (uri, base): (Uri, Uri) = (given.parse().ok()?, base.parse().ok()?);
    let is_base = uri.scheme() == base.scheme() && uri.authority() == base.authority();
    if is_base && uri.authority().is_some() {
        return Some(given.to_owned());
    }
    let authority = uri.authority()?;
    let is_provider = hosts.iter().any(|host| authority.as_str().ends_with(host));
    let is_plain = authority.port().is_none() && !authority.as_str().contains('@');
    let target = uri.path_and_query()?;
    (is_provider && is_plain).then(|| format!("https://{authority}{target}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_at_the_provider_or_nowhere() {
        let of =
            |given: &str| address(given, "https://openapi.alipay.com/gateway.do", &[".alipay.com"]);
        let good = "https://dwbillcenter.alipay.com/downloadBillFile.resource?fileId=1";
        assert_eq!(of(good), Some(good.to_owned()));
        assert_eq!(
            of(&good.replace("https", "http")),
            Some(good.to_owned()),
            "as it is documented"
        );
        for bad in [
            "https://dwbillcenter.alipay.com.example.org/x",
            "https://alipay.com:8443/x",
            "https://a.alipay.com:8443/x",
            "https://x@a.alipay.com/x",
            "https://evilalipay.com/x",
            "https://169.254.169.254/latest/meta-data",
            "file:///etc/passwd",
            "/relative",
            "",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
        let local = "http://127.0.0.1:8080/files/1?token=2";
        let base = "http://127.0.0.1:8080";
        assert_eq!(address(local, base, &[".alipay.com"]), Some(local.to_owned()));
        assert_eq!(address("http://127.0.0.1:8081/x", base, &[]), None);
    }
}
