//! A DNS server over UDP and TCP whose answers, including false ones, are set by a test.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinSet;

use crate::network::LOOPBACK;

/// An answer for a name.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The addresses of the requested family.
    Addresses(Vec<IpAddr>),
    /// A CNAME record, and the address of its target.
    Alias(String, Vec<IpAddr>),
    /// An address of another name than the requested one.
    Smuggled(String, IpAddr),
    /// An address in a response with another query's id.
    WrongNumber(IpAddr),
    NoSuchName,
    Failure,
    Garbage,
    Silence,
}

type Zone = HashMap<String, Vec<Reply>>;

#[derive(Default)]
struct State {
    zone: Mutex<Zone>,
    /// The requested names, with the number of the type.
    asked: Mutex<Vec<(String, u16)>>,
}

pub const A: u16 = 1;
pub const AAAA: u16 = 28;

/// Runs until it is dropped.
pub struct NameServer {
    pub address: SocketAddr,
    state: Arc<State>,
    _tasks: JoinSet<()>,
}

impl NameServer {
    pub async fn start() -> Self {
        let (udp, tcp) = bind().await;
        let (address, state) = (udp.local_addr().unwrap(), Arc::new(State::default()));
        let mut tasks = JoinSet::new();
        let (of_udp, of_tcp) = (state.clone(), state.clone());
        tasks.spawn(async move {
            let mut packet = [0; 4096];
            while let Ok((length, from)) = udp.recv_from(&mut packet).await {
                if let Some(answer) = of_udp.answer(&packet[..length], 512) {
                    udp.send_to(&answer, from).await.ok();
                }
            }
        });
        tasks.spawn(async move {
            while let Ok((stream, _)) = tcp.accept().await {
                talk(stream, &of_tcp).await.ok();
            }
        });
        Self { address, state, _tasks: tasks }
    }

    /// Sets the answers of a name. Each query of a type gets the next one, and the last one
    /// repeats.
    pub fn set(&self, name: &str, replies: Vec<Reply>) {
        self.state.zone.lock().unwrap().insert(name.to_owned(), replies);
    }

    pub fn asked(&self) -> Vec<(String, u16)> {
        self.state.asked.lock().unwrap().clone()
    }
}

/// The same free port for UDP and TCP.
async fn bind() -> (UdpSocket, TcpListener) {
    loop {
        let udp = UdpSocket::bind(SocketAddr::new(LOOPBACK, 0)).await.unwrap();
        if let Ok(tcp) = TcpListener::bind(udp.local_addr().unwrap()).await {
            return (udp, tcp);
        }
    }
}

async fn talk(mut stream: TcpStream, state: &State) -> io::Result<()> {
    loop {
        let mut packet = vec![0; stream.read_u16().await?.into()];
        stream.read_exact(&mut packet).await?;
        if let Some(answer) = state.answer(&packet, usize::MAX) {
            stream.write_u16(answer.len() as u16).await?;
            stream.write_all(&answer).await?;
        }
    }
}

impl State {
    fn answer(&self, packet: &[u8], room: usize) -> Option<Vec<u8>> {
        let question = Question::read(packet)?;
        let before = {
            let mut asked = self.asked.lock().unwrap();
            let same = (question.name.clone(), question.kind);
            let before = asked.iter().filter(|other| **other == same).count();
            asked.push(same);
            before
        };
        let reply = {
            let zone = self.zone.lock().unwrap();
            let replies = zone.get(&question.name);
            replies.map_or(Reply::NoSuchName, |all| all[before.min(all.len() - 1)].clone())
        };
        let own = |addresses: &[IpAddr]| -> Vec<Vec<u8>> {
            addresses.iter().filter_map(|address| question.record(&[0xc0, 12], *address)).collect()
        };
        let whole = match reply {
            Reply::Addresses(addresses) => question.response(question.id, 0, &own(&addresses)),
            Reply::Alias(other, addresses) => {
                let other = labels(&other);
                let mut records = vec![record(&[0xc0, 12], 5, &other)];
                records.extend(addresses.iter().filter_map(|address| question.record(&other, *address)));
                question.response(question.id, 0, &records)
            }
            Reply::Smuggled(other, address) => {
                let records: Vec<_> = question.record(&labels(&other), address).into_iter().collect();
                question.response(question.id, 0, &records)
            }
            Reply::WrongNumber(address) => question.response(question.id ^ 0x5555, 0, &own(&[address])),
            Reply::NoSuchName => question.response(question.id, 3, &[]),
            Reply::Failure => question.response(question.id, 2, &[]),
            Reply::Garbage => vec![0xff; 40],
            Reply::Silence => return None,
        };
        if whole.len() <= room {
            return Some(whole);
        }
        let mut cut = question.response(question.id, 0, &[]);
        cut[2] |= 0b10;
        Some(cut)
    }
}

struct Question {
    id: u16,
    name: String,
    kind: u16,
    /// The question section of the query.
    section: Vec<u8>,
}

impl Question {
    fn read(packet: &[u8]) -> Option<Self> {
        let (mut at, mut name) = (12, Vec::new());
        loop {
            let length = usize::from(*packet.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            name.push(String::from_utf8_lossy(packet.get(at..at + length)?).to_ascii_lowercase());
            at += length;
        }
        let kind = u16::from_be_bytes([*packet.get(at)?, *packet.get(at + 1)?]);
        let section = packet.get(12..at + 4)?.to_vec();
        Some(Self { id: u16::from_be_bytes([packet[0], packet[1]]), name: name.join("."), kind, section })
    }

    fn response(&self, id: u16, code: u16, records: &[Vec<u8>]) -> Vec<u8> {
        let counts = [id, 0x8180 | code, 1, records.len() as u16, 0, 0];
        let mut packet: Vec<u8> = counts.into_iter().flat_map(u16::to_be_bytes).collect();
        packet.extend(&self.section);
        packet.extend(records.concat());
        packet
    }

    /// None if the address is not of the requested family.
    fn record(&self, name: &[u8], address: IpAddr) -> Option<Vec<u8>> {
        match address {
            IpAddr::V4(four) if self.kind == A => Some(record(name, A, &four.octets())),
            IpAddr::V6(six) if self.kind == AAAA => Some(record(name, AAAA, &six.octets())),
            _ => None,
        }
    }
}

/// With a time to live of 0, so that the next query gets the next answer.
fn record(name: &[u8], kind: u16, data: &[u8]) -> Vec<u8> {
    let mut bytes = name.to_vec();
    bytes.extend(kind.to_be_bytes());
    bytes.extend([0, 1, 0, 0, 0, 0]);
    bytes.extend((data.len() as u16).to_be_bytes());
    bytes.extend(data);
    bytes
}

fn labels(name: &str) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        name.split('.').flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    bytes.push(0);
    bytes
}
