//! Where memory ends. The emulator itself goes on at the beginning there, as mGBA's scripts do.

use std::time::Instant;

use framewire_protocol::{Batch, Effect, MAX_OPS, Op, Outcome, Value};

use super::Problem;
use crate::app::Site;
use crate::emulators::Served;

/// Bytes that the bus has addresses for.
const BUS: u64 = 1 << 32;

/// What an operation takes from memory, or puts there.
struct Access<'a> {
    /// `None` is the bus.
    domain: Option<&'a str>,
    address: u32,
    length: u64,
}

impl<'a> Access<'a> {
    fn of(op: &'a Op) -> Option<Access<'a>> {
        let (domain, address, length) = match op {
            Op::Read8 { address } | Op::Write8 { address, .. } => (None, *address, 1),
            Op::Read16 { address } | Op::Write16 { address, .. } => (None, *address, 2),
            Op::Read32 { address } | Op::Write32 { address, .. } => (None, *address, 4),
            Op::ReadRange { address, length } => (None, *address, u64::from(*length)),
            Op::WriteRange { address, data } => (None, *address, data.len() as u64),
            Op::DomainRead8 { domain, address } | Op::DomainWrite8 { domain, address, .. } => {
                (Some(domain.as_str()), *address, 1)
            }
            Op::DomainRead16 { domain, address } | Op::DomainWrite16 { domain, address, .. } => {
                (Some(domain.as_str()), *address, 2)
            }
            Op::DomainRead32 { domain, address } | Op::DomainWrite32 { domain, address, .. } => {
                (Some(domain.as_str()), *address, 4)
            }
            Op::DomainReadRange { domain, address, length } => {
                (Some(domain.as_str()), *address, u64::from(*length))
            }
            _ => return None,
        };
        Some(Access { domain, address, length })
    }

    /// Refuses what goes beyond `size` bytes.
    fn within(&self, size: u64) -> Result<(), Problem> {
        let Access { domain, address, length } = self;
        let end = u64::from(*address) + length;
        if end <= size && u64::from(*address) < size {
            return Ok(());
        }
        let place = domain.map_or("the bus".to_owned(), |domain| format!("the domain {domain:?}"));
        let problem =
            format!("is {address}, and {length} bytes from there go beyond {place}, which has {size} bytes");
        let accepts = match size.checked_sub((*length).max(1)) {
            Some(last) => format!("0 to {last} for {length} bytes"),
            None => format!("at most {size} bytes"),
        };
        Err(Problem::parameter("address", &problem, accepts))
    }
}

/// What these operations take from memory or put there, each with its number.
fn accesses(ops: &[Op]) -> impl Iterator<Item = (usize, Access<'_>)> {
    ops.iter().enumerate().filter_map(|(index, op)| Some((index, Access::of(op)?)))
}

/// Refuses what goes beyond the end of the bus, with the number of the operation.
fn check_bus(ops: &[Op]) -> Result<(), (usize, Problem)> {
    accesses(ops)
        .filter(|(_, access)| access.domain.is_none())
        .try_for_each(|(index, access)| access.within(BUS).map_err(|problem| (index, problem)))
}

/// The memory domains that operations use, each with the first operation that does.
struct Domains {
    used: Vec<(String, usize)>,
    /// Whether anything is changed, in memory or elsewhere.
    changed: bool,
}

impl Domains {
    fn of(ops: &[Op]) -> Domains {
        let changed = ops.iter().any(|op| op.info().effect == Effect::Change);
        let mut domains = Domains { used: Vec::new(), changed };
        for (index, access) in accesses(ops) {
            let Some(domain) = access.domain else { continue };
            if !domains.used.iter().any(|(known, _)| known == domain) {
                domains.used.push((domain.to_owned(), index));
            }
        }
        domains
    }

    /// The operations that ask for their sizes.
    fn ops(&self) -> Vec<Op> {
        self.used.iter().map(|(domain, _)| Op::DomainSize { domain: domain.clone() }).collect()
    }

    /// Takes the sizes from the first of these results, and refuses what goes beyond them.
    fn check(&self, ops: &[Op], outcome: &mut Outcome) -> Result<(), (usize, Problem)> {
        let count = self.used.len().min(outcome.results.len());
        let mut sizes = Vec::with_capacity(count);
        for ((domain, first), result) in self.used.iter().zip(outcome.results.drain(..count)) {
            match result {
                Ok(Value::Int(size)) => sizes.push((domain.as_str(), u64::try_from(size).unwrap_or(0))),
                Ok(_) => {
                    return Err((
                        *first,
                        framewire_protocol::OpError::failed("the emulator gave no size of a domain").into(),
                    ));
                }
                Err(error) => return Err((*first, error.into())),
            }
        }
        for (index, access) in accesses(ops) {
            if let Some((_, size)) = sizes.iter().find(|(domain, _)| Some(*domain) == access.domain) {
                access.within(*size).map_err(|problem| (index, problem))?;
            }
        }
        Ok(())
    }
}

/// A problem, and the number of the operation that it is about, if it is about one.
pub(crate) type Beyond = (Option<usize>, Box<Problem>);

/// Checks a batch; gives what the emulator is to do, and what is to be asked of its outcome. Where the batch only reads, the
/// domains' sizes are asked for by the way; before anything is changed they must be known.
pub(crate) async fn bounded(
    site: &Site,
    served: &Served,
    mut batch: Batch,
    deadline: Instant,
) -> Result<(Batch, Unknown), Beyond> {
    let of_op = |(index, problem)| (Some(index), Box::new(problem));
    check_bus(&batch.ops).map_err(of_op)?;
    let domains = Domains::of(&batch.ops);
    let sizes = domains.ops();
    if sizes.is_empty() {
        return Ok((batch, Unknown(None)));
    }
    if domains.changed || sizes.len() + batch.ops.len() > MAX_OPS {
        let asked = site.perform_until(served, Batch::new(sizes), deadline).await;
        let mut outcome = asked.map_err(|error| (None, Box::new(error.into())))?;
        domains.check(&batch.ops, &mut outcome).map_err(of_op)?;
        return Ok((batch, Unknown(None)));
    }
    let unknown = Unknown(Some((domains, batch.ops.clone())));
    batch.ops.splice(0..0, sizes);
    Ok((batch, unknown))
}

/// The domains whose sizes come with the outcome, and the operations that use them.
pub(crate) struct Unknown(Option<(Domains, Vec<Op>)>);

impl Unknown {
    /// The outcome of the batch's own operations.
    pub(crate) fn check(self, mut outcome: Outcome) -> Result<Outcome, Beyond> {
        if let Some((domains, ops)) = self.0 {
            domains.check(&ops, &mut outcome).map_err(|(index, problem)| (Some(index), Box::new(problem)))?;
        }
        Ok(outcome)
    }
}

/// Does a batch, unless it goes beyond the end of the bus or of a memory domain.
pub(crate) async fn perform(
    site: &Site,
    served: &Served,
    batch: Batch,
    deadline: Instant,
) -> Result<Outcome, Beyond> {
    let (batch, unknown) = bounded(site, served, batch, deadline).await?;
    let outcome =
        site.perform_until(served, batch, deadline).await.map_err(|error| (None, Box::new(error.into())))?;
    unknown.check(outcome)
}

/// Does one operation, as [`perform`] does.
pub(crate) async fn perform_one(
    site: &Site,
    served: &Served,
    batch: impl Into<Batch>,
) -> Result<Outcome, Problem> {
    let deadline = Instant::now() + site.app.deadline;
    perform(site, served, batch.into(), deadline).await.map_err(|(_, problem)| *problem)
}
