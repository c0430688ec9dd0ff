//! Special-purpose IP addresses: those that are not on the public internet.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// The purpose of an address that is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpecialAddress {
    /// The unspecified address. Connecting to it reaches this machine.
    Unspecified,
    /// A loopback address of this machine.
    Loopback,
    /// A private network, IPv4 or IPv6 (unique local).
    Private,
    /// The local link.
    LinkLocal,
    /// The metadata service of a cloud, which provides credentials to a machine.
    Metadata,
    /// Carrier-grade NAT, shared by the customers of a carrier.
    Shared,
    /// Multicast.
    Multicast,
    /// Reserved for documentation.
    Documentation,
    /// Reserved for benchmarks or protocols, or not assigned.
    Reserved,
}

impl SpecialAddress {
    /// Returns the purpose of an address; `None` if it is public. An address that embeds an IPv4
    /// address (mapped, NAT64, 6to4) is public only if that one is.
    pub fn classify(address: IpAddr) -> Option<Self> {
        match address.to_canonical() {
            IpAddr::V4(address) => classify_v4(address),
            IpAddr::V6(address) => classify_v6(address),
        }
    }
}

fn classify_v4(address: Ipv4Addr) -> Option<SpecialAddress> {
    let special = match address.octets() {
        // The second is Azure's, in a public range. The addresses of other clouds are in ranges
        // below.
        [169, 254, 169, 254] | [168, 63, 129, 16] => SpecialAddress::Metadata,
        [0, 0, 0, 0] => SpecialAddress::Unspecified,
        [127, ..] => SpecialAddress::Loopback,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => SpecialAddress::Private,
        [169, 254, ..] => SpecialAddress::LinkLocal,
        [100, 64..=127, ..] => SpecialAddress::Shared,
        [224..=239, ..] => SpecialAddress::Multicast,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => SpecialAddress::Documentation,
        // This network; protocols; 6to4 relays; benchmarks; future use and broadcast.
        [0, ..] | [192, 0, 0, _] | [192, 88, 99, _] | [198, 18..=19, ..] | [240..=255, ..] => {
            SpecialAddress::Reserved
        }
        _ => return None,
    };
    Some(special)
}

fn classify_v6(address: Ipv6Addr) -> Option<SpecialAddress> {
    let special = match address.segments() {
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] => SpecialAddress::Metadata,
        [0, 0, 0, 0, 0, 0, 0, 0] => SpecialAddress::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => SpecialAddress::Loopback,
        [0x0064, 0xff9b, 0, 0, 0, 0, ..] | [0x2002, ..] => {
            return embedded(address.into()).and_then(classify_v4);
        }
        [0xfc00..=0xfdff, ..] => SpecialAddress::Private,
        // Site-local addresses are deprecated, but still in use.
        [0xfe80..=0xfeff, ..] => SpecialAddress::LinkLocal,
        [0xff00..=0xffff, ..] => SpecialAddress::Multicast,
        [0x2001, 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => SpecialAddress::Documentation,
        // Protocols: Teredo, which embeds an obfuscated IPv4 address, ORCHID, benchmarks.
        [0x2001, 0..=0x01ff, ..] => SpecialAddress::Reserved,
        // The range of all public addresses that were assigned so far.
        [0x2000..=0x3fff, ..] => return None,
        _ => SpecialAddress::Reserved,
    };
    Some(special)
}

/// Returns the IPv4 address that an IPv6 address leads to through a translator (NAT64, 6to4).
pub(super) fn embedded(address: IpAddr) -> Option<Ipv4Addr> {
    let IpAddr::V6(address) = address else {
        return None;
    };
    let (high, low) = match address.segments() {
        [0x0064, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    Some(Ipv4Addr::from(u32::from(high) << 16 | u32::from(low)))
}

impl fmt::Display for SpecialAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "the unspecified address",
            Self::Loopback => "a loopback address of this machine",
            Self::Private => "an address of a private network",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "the metadata service of a cloud",
            Self::Shared => "an address shared by the customers of a carrier",
            Self::Multicast => "a multicast address",
            Self::Documentation => "an address for documentation only",
            Self::Reserved => "a reserved address",
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn every_special_range_is_known() {
        use SpecialAddress::*;
        let cases = [
            ("8.8.8.8", None),
            ("100.63.255.255", None),
            ("100.128.0.0", None),
            ("172.15.255.255", None),
            ("172.32.0.0", None),
            ("223.255.255.255", None),
            ("0.0.0.0", Some(Unspecified)),
            ("0.1.2.3", Some(Reserved)),
            ("127.0.0.1", Some(Loopback)),
            ("127.255.255.255", Some(Loopback)),
            ("10.1.2.3", Some(Private)),
            ("172.16.0.0", Some(Private)),
            ("172.31.255.255", Some(Private)),
            ("192.168.0.1", Some(Private)),
            ("169.254.0.1", Some(LinkLocal)),
            ("169.254.169.254", Some(Metadata)),
            ("168.63.129.16", Some(Metadata)),
            ("100.64.0.0", Some(Shared)),
            ("100.100.100.200", Some(Shared)),
            ("224.0.0.1", Some(Multicast)),
            ("192.0.2.1", Some(Documentation)),
            ("198.51.100.1", Some(Documentation)),
            ("203.0.113.1", Some(Documentation)),
            ("192.0.0.192", Some(Reserved)),
            ("192.88.99.1", Some(Reserved)),
            ("198.18.0.1", Some(Reserved)),
            ("198.19.255.255", Some(Reserved)),
            ("240.0.0.1", Some(Reserved)),
            ("255.255.255.255", Some(Reserved)),
            ("2606:4700:4700::1111", None),
            ("2001:4860:4860::8888", None),
            ("::", Some(Unspecified)),
            ("::1", Some(Loopback)),
            ("::7f00:1", Some(Reserved)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("::ffff:8.8.8.8", None),
            ("64:ff9b::127.0.0.1", Some(Loopback)),
            ("64:ff9b::169.254.169.254", Some(Metadata)),
            ("64:ff9b::8.8.8.8", None),
            ("64:ff9b:1::8.8.8.8", Some(Reserved)),
            ("2002:a00:1::", Some(Private)),
            ("2002:808:808::1", None),
            ("2001:0:4136:e378:8000:63bf:3fff:fdd2", Some(Reserved)),
            ("2001:db8::1", Some(Documentation)),
            ("3fff::1", Some(Documentation)),
            ("fc00::1", Some(Private)),
            ("fd12::1", Some(Private)),
            ("fd00:ec2::254", Some(Metadata)),
            ("fe80::1", Some(LinkLocal)),
            ("fec0::1", Some(LinkLocal)),
            ("ff02::1", Some(Multicast)),
            ("100::1", Some(Reserved)),
            ("4000::1", Some(Reserved)),
        ];
        for (address, expected) in cases {
            assert_eq!(
                SpecialAddress::classify(address.parse().unwrap()),
                expected,
                "{address}"
            );
        }
    }

    proptest! {
        /// The standard library's own ranges are a part of ours.
        #[test]
        fn what_the_standard_library_calls_special_is(bits in any::<u32>(), wide in any::<u128>()) {
            let v4 = Ipv4Addr::from(bits);
            if v4.is_private() || v4.is_loopback() || v4.is_link_local() || v4.is_multicast()
                || v4.is_broadcast() || v4.is_documentation() || v4.is_unspecified()
            {
                prop_assert!(SpecialAddress::classify(v4.into()).is_some());
            }
            let v6 = Ipv6Addr::from(wide);
            if v6.is_loopback() || v6.is_multicast() || v6.is_unique_local()
                || v6.is_unicast_link_local() || v6.is_unspecified()
            {
                prop_assert!(SpecialAddress::classify(v6.into()).is_some());
            }
        }

        #[test]
        fn wrapping_an_address_makes_it_no_more_public(bits in any::<u32>()) {
            let v4 = Ipv4Addr::from(bits);
            let [a, b, c, d] = v4.octets();
            let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
            for wrapped in [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            ] {
                prop_assert_eq!(SpecialAddress::classify(wrapped.into()), SpecialAddress::classify(v4.into()));
            }
        }
    }
}
