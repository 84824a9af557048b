//! Where a byte of memory is, in replies.

use std::collections::BTreeMap;

use framewire_states::OnBus;
use serde::Serialize;
use utoipa::ToSchema;

/// Where a byte of memory is.
#[derive(Serialize, ToSchema)]
#[schema(as = MemoryPlace)]
pub(super) struct Place {
    /// The memory domain; null for the bus.
    domain: Option<String>,
    /// Its offset in the domain; null for the bus.
    offset: Option<u32>,
    /// Its bank, in memory of which the bus shows one bank at a time; otherwise null.
    bank: Option<u32>,
    /// Its address on the bus, where it is while its bank is mapped; null if it is not there.
    address: Option<u32>,
    /// The symbol at this address, if one is loaded.
    symbol: Option<String>,
}

impl Place {
    /// A byte at an offset of a domain, or at an address of the bus, with its name among those of addresses.
    pub(super) fn new(
        domain: Option<&str>,
        at: u32,
        on_bus: Option<OnBus>,
        names: &BTreeMap<u32, String>,
    ) -> Place {
        let symbol = Place::unbanked(on_bus).and_then(|address| names.get(&address).cloned());
        Place {
            domain: domain.map(str::to_owned),
            offset: domain.map(|_| at),
            bank: on_bus.and_then(|place| place.bank),
            address: on_bus.map(|place| place.address),
            symbol,
        }
    }

    /// The address that symbols name, which know of no banks: there is one only in the first two, which programs without
    /// banks see.
    pub(super) fn unbanked(on_bus: Option<OnBus>) -> Option<u32> {
        on_bus.filter(|place| place.bank.is_none_or(|bank| bank < 2)).map(|place| place.address)
    }

    /// It as expressions and areas name it: the bus address, or in banked memory the domain and the offset.
    pub(super) fn in_brackets(&self) -> String {
        match (self, &self.domain) {
            (Place { bank: None, address: Some(address), .. }, _) => format!("{address:#x}"),
            (Place { offset: Some(offset), .. }, Some(domain)) => format!("{domain}:{offset:#x}"),
            (Place { address, .. }, _) => format!("{:#x}", address.unwrap_or_default()),
        }
    }
}
