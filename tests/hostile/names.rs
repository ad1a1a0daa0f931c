//! A DNS server on loopback that answers as an attacker's would. The requested name selects the
//! answer: the label before `example.com` (a name that belongs to nobody) says how. Labels before
//! it separate the cases.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;

/// Public in every table, but not assigned to anybody (IANA reserves 2d00::/8): a connection
/// reaches no machine.
const NOBODY: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2d00, 0, 0, 0, 0, 0, 0, 1));
/// Public as well, and this machine's own: the tests' runner assumes that one of its interfaces has
/// it.
pub const OWN: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2d00, 0, 0, 0, 0, 0, 0, 7));
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const METADATA: IpAddr = IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254));

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const NO_ERROR: u8 = 0;
const SERVER_FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;

pub struct Names {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

/// The answer to one question.
struct DnsAnswer {
    code: u8,
    records: Vec<Record>,
    truncated: bool,
}

/// `owner` is not always the requested name, because this server lies.
struct Record {
    owner: String,
    kind: u16,
    data: Vec<u8>,
}

impl Names {
    /// Serves until the test's runtime stops.
    pub async fn serve() -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = asked.clone();
        tokio::spawn(async move {
            let mut times: HashMap<(String, u16), usize> = HashMap::new();
            let mut buffer = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let Some((name, kind, end)) = question(&buffer[..length]) else { continue };
                log.lock().unwrap().push(name.clone());
                let time = times.entry((name.clone(), kind)).or_default();
                *time += 1;
                if let Some(answer) = answer(&name, kind, *time) {
                    let _ = socket.send_to(&message(&buffer[..end], &answer), from).await;
                }
            }
        });
        Self { address, asked }
    }

    /// Whether this name, or one under it, was requested.
    pub fn was_asked(&self, name: &str) -> bool {
        let under = format!(".{name}");
        self.asked.lock().unwrap().iter().any(|asked| asked == name || asked.ends_with(&under))
    }
}

/// The name in lower case, the type, and the offset after the question.
fn question(packet: &[u8]) -> Option<(String, u16, usize)> {
    let mut labels = Vec::new();
    let mut at = 12;
    loop {
        let length = usize::from(*packet.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(packet.get(at..at + length)?).to_ascii_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]);
    packet.get(at + 3)?;
    Some((labels.join("."), kind, at + 4))
}

/// The answer when the name is requested for the `time`th time. `None` is silence.
fn answer(name: &str, kind: u16, time: usize) -> Option<DnsAnswer> {
    let found = |addresses: &[IpAddr]| Some(DnsAnswer::of(name, kind, addresses));
    if matches!(name, "api.test" | "other.test" | "liar.test") || name.ends_with(".api.test") {
        return found(&[LOOPBACK]);
    }
    let how = name.strip_suffix(".example.com").and_then(|rest| rest.rsplit('.').next());
    match how.unwrap_or_default() {
        "inside" => found(&[LOOPBACK]),
        "own" => found(&[OWN]),
        "mixed" => found(&[NOBODY, LOOPBACK]),
        "metadata" => found(&[METADATA]),
        "azure" => found(&["168.63.129.16".parse().unwrap()]),
        "zero" => found(&[Ipv4Addr::UNSPECIFIED.into()]),
        "shared" => found(&["100.100.100.200".parse().unwrap()]),
        "broadcast" => found(&["255.255.255.255".parse().unwrap()]),
        "six" => found(&[Ipv6Addr::LOCALHOST.into()]),
        "mapped" => found(&["::ffff:127.0.0.1".parse().unwrap()]),
        "compatible" => found(&["::127.0.0.1".parse().unwrap()]),
        "nat64" => found(&["64:ff9b::7f00:1".parse().unwrap()]),
        "localnat64" => found(&["64:ff9b:1::7f00:1".parse().unwrap()]),
        "sixtofour" => found(&["2002:7f00:1::1".parse().unwrap()]),
        "teredo" => found(&["2001:0:7f00:1::80ff:fffe".parse().unwrap()]),
        "unique" => found(&["fd00::1".parse().unwrap()]),
        "link" => found(&["fe80::1".parse().unwrap()]),
        // Nobody's address for the first lookup, this machine's for the second.
        "rebind" => found(&[if time == 1 { NOBODY } else { LOOPBACK }]),
        // This machine's address for the first family: a gate that remembers a refusal is as wrong
        // as one that remembers a permission.
        "family" => found(&[if kind == A { LOOPBACK } else { NOBODY }]),
        "many" => {
            let mut all: Vec<IpAddr> = (1..=30).map(|n| Ipv6Addr::new(0x2d00, 0, 0, 0, 0, 0, 1, n).into()).collect();
            all.push(Ipv6Addr::LOCALHOST.into());
            found(&all)
        }
        "alias" => {
            let inside = "behind.inside.example.com";
            let mut answer = DnsAnswer::of(inside, kind, &[LOOPBACK]);
            answer.records.insert(0, Record { owner: name.into(), kind: CNAME, data: encoded(inside) });
            Some(answer)
        }
        "circle" => {
            let mut answer = DnsAnswer::of(name, kind, &[]);
            answer.records.push(Record { owner: name.into(), kind: CNAME, data: encoded(name) });
            Some(answer)
        }
        // The answer to another question.
        "other" => Some(DnsAnswer::of("elsewhere.example.com", kind, &[LOOPBACK])),
        "truncated" => Some(DnsAnswer { truncated: true, ..DnsAnswer::of(name, kind, &[LOOPBACK]) }),
        "failing" => Some(DnsAnswer { code: SERVER_FAILURE, records: Vec::new(), truncated: false }),
        "silent" => None,
        _ => Some(DnsAnswer { code: NO_SUCH_NAME, records: Vec::new(), truncated: false }),
    }
}

impl DnsAnswer {
    /// The addresses of the requested kind.
    fn of(owner: &str, kind: u16, addresses: &[IpAddr]) -> Self {
        let data = addresses.iter().filter_map(|address| match (address, kind) {
            (IpAddr::V4(address), A) => Some(address.octets().to_vec()),
            (IpAddr::V6(address), AAAA) => Some(address.octets().to_vec()),
            _ => None,
        });
        let records = data.map(|data| Record { owner: owner.to_owned(), kind, data }).collect();
        Self { code: NO_ERROR, records, truncated: false }
    }
}

fn encoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.') {
        bytes.push(u8::try_from(label.len()).unwrap());
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes
}

/// The answer's packet. `asked` is the query up to the end of the question. The time to live is 0,
/// so that nothing is cached.
fn message(asked: &[u8], answer: &DnsAnswer) -> Vec<u8> {
    let mut packet = asked.to_vec();
    packet[2] = 0x84 | u8::from(answer.truncated) << 1 | (asked[2] & 1);
    packet[3] = 0x80 | answer.code;
    let count = u16::try_from(answer.records.len()).unwrap();
    packet[4..12].copy_from_slice(&[0, 1, count.to_be_bytes()[0], count.to_be_bytes()[1], 0, 0, 0, 0]);
    let asked_for = &asked[12..asked.len() - 4];
    for record in &answer.records {
        let owner = encoded(&record.owner);
        // A pointer to the question, as every server writes it, so that many records fit.
        packet.extend(if owner == asked_for { vec![0xc0, 12] } else { owner });
        packet.extend(record.kind.to_be_bytes());
        packet.extend([0, 1, 0, 0, 0, 0]);
        packet.extend(u16::try_from(record.data.len()).unwrap().to_be_bytes());
        packet.extend(&record.data);
    }
    packet
}
