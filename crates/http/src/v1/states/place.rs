//! Where a byte of memory is, in replies.

use std::collections::BTreeMap;

use framewire_states::OnBus;
use serde::Serialize;
use utoipa::ToSchema;

/// Where a byte of memory is.
#[derive(Serialize, ToSchema)]
#[schema(as = MemoryPlace)]
pub(in crate::v1) struct MemoryPlace {
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

impl MemoryPlace {
    /// A byte at an offset of a domain, or at an address of the bus, with its name among those of addresses.
    pub(in crate::v1) fn new(
        domain: Option<&str>,
        at: u32,
        on_bus: Option<OnBus>,
        names: &BTreeMap<u32, String>,
    ) -> MemoryPlace {
        let symbol = MemoryPlace::unbanked(on_bus).and_then(|address| names.get(&address).cloned());
        MemoryPlace {
            domain: domain.map(str::to_owned),
            offset: domain.map(|_| at),
            bank: on_bus.and_then(|place| place.bank),
            address: on_bus.map(|place| place.address),
            symbol,
        }
    }

    /// The address that symbols name, which know of no banks: there is one only in the first two, which programs without
    /// banks see.
    pub(in crate::v1) fn unbanked(on_bus: Option<OnBus>) -> Option<u32> {
        on_bus.filter(|place| place.bank.is_none_or(|bank| bank < 2)).map(|place| place.address)
    }

    /// It as expressions and areas name it: the bus address, or in banked memory the domain and the offset.
    pub(in crate::v1) fn in_brackets(&self) -> String {
        match (self, &self.domain) {
            (MemoryPlace { bank: None, address: Some(address), .. }, _) => format!("{address:#x}"),
            (MemoryPlace { offset: Some(offset), .. }, Some(domain)) => format!("{domain}:{offset:#x}"),
            (MemoryPlace { address, .. }, _) => format!("{:#x}", address.unwrap_or_default()),
        }
    }
}
