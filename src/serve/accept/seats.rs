//! Who may have how many connections: in all, and per address.
//!
//! Promises: a seat is free again when it is dropped; the table holds no address without a connection, so it is bounded by the total;
//! turning a client away costs one small write that cannot block.
//! Does not: wait for a seat.

use std::{
    collections::HashMap,
    io::Write,
    net::{IpAddr, Ipv6Addr, Shutdown},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::net::TcpStream;

use super::Settings;

/// Which cap is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// That of the service.
    Total,
    /// That of the address.
    Address,
}

/// The caps and who sits.
pub(super) struct Seats {
    total_max: usize,
    per_address_max: usize,
    trusted: Vec<ipnet::IpNet>,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    total: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One connection's place.
pub(super) struct Seat {
    seats: Arc<Seats>,
    /// Whose count it is part of; none for a trusted proxy.
    address: Option<IpAddr>,
}

impl Seats {
    pub(super) fn new(settings: &Settings) -> Arc<Self> {
        Arc::new(Self {
            total_max: settings.connections_max,
            per_address_max: settings.connections_per_address_max,
            trusted: settings.trusted.clone(),
            taken: Mutex::default(),
        })
    }

    /// A place for a connection from `peer`, or which cap stands against it.
    pub(super) fn take(self: &Arc<Self>, peer: IpAddr) -> Result<Seat, Full> {
        let address = (!self.trusts(peer)).then(|| counted(peer));
        let mut taken = self.taken();
        if taken.total >= self.total_max {
            return Err(Full::Total);
        }
        if let Some(address) = address {
            let here = taken.by_address.get(&address).copied().unwrap_or(0);
            if here >= self.per_address_max {
                return Err(Full::Address);
            }
            taken.by_address.insert(address, here + 1);
        }
        taken.total += 1;
        drop(taken);
        Ok(Seat { seats: self.clone(), address })
    }

    fn trusts(&self, peer: IpAddr) -> bool {
        self.trusted.iter().any(|net| net.contains(&peer.to_canonical()))
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.taken();
        taken.total = taken.total.saturating_sub(1);
        let Some(address) = self.address else { return };
        if let Some(here) = taken.by_address.get_mut(&address) {
            *here = here.saturating_sub(1);
            if *here == 0 {
                taken.by_address.remove(&address);
            }
        }
    }
}

/// The address that an address is counted by: one household or machine is handed a whole IPv6 /64.
fn counted(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(v4) => IpAddr::V4(v4),
        IpAddr::V6(v6) => IpAddr::V6(Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX))),
    }
}

macro_rules! away {
    ($status:literal, $message:literal, $length:literal) => {
        concat!(
            "HTTP/1.1 ",
            $status,
            "\r\ncontent-type: application/json\r\nconnection: close\r\nretry-after: 1\r\ncontent-length: ",
            $length,
            "\r\n\r\n",
            "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32000,\"message\":\"",
            $message,
            "\",\"data\":{\"reason\":\"connections\",\"retryAfterSeconds\":1}}}"
        )
    };
}

// The one place besides `gate::refusal` with status codes: what is refused here never becomes a request.
const AWAY_TOTAL: &str = away!("503 Service Unavailable", "the server has too many connections; try again in 1 second", "177");
const AWAY_ADDRESS: &str = away!("429 Too Many Requests", "too many connections from this address; try again in 1 second", "183");

/// Tells a client why and closes. The text goes into an empty send buffer or nowhere: a client that has sent already may see a reset
/// instead, and an HTTP/2 client sees a protocol error; neither is worth waiting for.
pub(super) fn turn_away(stream: TcpStream, full: Full) {
    let text = match full {
        Full::Total => AWAY_TOTAL,
        Full::Address => AWAY_ADDRESS,
    };
    // As a plain socket (still non-blocking): the runtime's one does not write before the poller has reported it writable.
    if let Ok(mut stream) = stream.into_std() {
        let _ = stream.write(text.as_bytes());
        let _ = stream.shutdown(Shutdown::Write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats(total: usize, each: usize, trusted: &[&str]) -> Arc<Seats> {
        Seats::new(&Settings {
            connections_max: total,
            connections_per_address_max: each,
            trusted: trusted.iter().map(|net| net.parse().unwrap()).collect(),
            ..Settings::default()
        })
    }

    fn take(seats: &Arc<Seats>, peer: &str) -> Result<Seat, Full> {
        seats.take(peer.parse().unwrap())
    }

    #[test]
    fn one_caller_has_one_count_however_it_writes_its_address() {
        for (one, other) in [("1.2.3.4", "::ffff:1.2.3.4"), ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9")] {
            let seats = seats(9, 1, &[]);
            let seat = take(&seats, one).ok().unwrap();
            assert_eq!(take(&seats, other).err(), Some(Full::Address), "{one} {other}");
            drop(seat);
            assert!(take(&seats, other).is_ok());
        }
        let seats = seats(9, 1, &[]);
        let _seat = take(&seats, "2001:db8:1:2::1").ok().unwrap();
        assert!(take(&seats, "2001:db8:1:3::1").is_ok());
    }

    #[test]
    fn a_trusted_proxy_has_the_total_only_and_strangers_leave_nothing() {
        let seats = seats(4, 1, &["10.0.0.0/8"]);
        let proxies: Vec<Seat> = ["10.1.1.1", "::ffff:10.1.1.1", "10.1.1.1"].iter().map(|peer| take(&seats, peer).ok().unwrap()).collect();
        let stranger = take(&seats, "9.9.9.9").ok().unwrap();
        assert_eq!(take(&seats, "10.1.1.1").err(), Some(Full::Total));
        drop((proxies, stranger));
        assert_eq!((seats.taken().total, seats.taken().by_address.len()), (0, 0));
    }

    #[test]
    fn what_is_said_to_those_turned_away_is_whole() {
        for text in [AWAY_TOTAL, AWAY_ADDRESS] {
            let (head, body) = text.split_once("\r\n\r\n").unwrap();
            assert!(head.ends_with(&format!("content-length: {}", body.len())), "{} {head}", body.len());
            assert!(serde_json::from_str::<serde_json::Value>(body).unwrap()["error"]["message"].is_string());
        }
    }
}
