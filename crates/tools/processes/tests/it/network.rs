//! Without `--allow-network` there is no network: servers of every kind on this machine receive
//! nothing.

use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};

use rcrt_jail::command::{CommandSpec, ExitReason, FilesystemView, Jail};

use crate::fixture::{Cell, helper, needs_the_jail};

/// Listening servers of every kind on this machine.
struct Servers {
    tcp: TcpListener,
    tcp6: Option<TcpListener>,
    udp: UdpSocket,
    named: UnixListener,
    abstracted: UnixListener,
    name: String,
    path: String,
}

impl Servers {
    fn start(cell: &Cell) -> Self {
        let path = cell.folders.path().join("socket");
        let name = format!("rcrt-test-{}", uuid::Uuid::new_v4());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let servers = Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            tcp6: TcpListener::bind("[::1]:0").ok(),
            udp: UdpSocket::bind("127.0.0.1:0").unwrap(),
            named: UnixListener::bind(&path).unwrap(),
            abstracted: UnixListener::bind_addr(&address).unwrap(),
            name,
            path: path.display().to_string(),
        };
        servers.tcp.set_nonblocking(true).unwrap();
        servers.udp.set_nonblocking(true).unwrap();
        servers.named.set_nonblocking(true).unwrap();
        servers.abstracted.set_nonblocking(true).unwrap();
        servers
    }

    /// A script that tries each server and prints the results.
    fn script(&self) -> String {
        let tcp6 = self.tcp6.as_ref().map_or(1, |server| server.local_addr().unwrap().port());
        format!(
            "def tell(kind, address, family=socket.AF_INET):\n    s = socket.socket(family, kind); s.settimeout(20)\n    s.connect(address); s.send(b'x')\n    return 'sent'\n\
             T, U = socket.SOCK_STREAM, socket.SOCK_DGRAM\n\
             print(error(tell, T, ('127.0.0.1', {})), error(tell, T, ('::1', {tcp6}), socket.AF_INET6), error(tell, T, '{}', socket.AF_UNIX), error(tell, T, '\\0{}', socket.AF_UNIX))\n\
             error(tell, U, ('127.0.0.1', {}))\n",
            self.tcp.local_addr().unwrap().port(),
            self.path,
            self.name,
            self.udp.local_addr().unwrap().port(),
        )
    }

    /// The servers that received something.
    fn heard(&self) -> Vec<&'static str> {
        let mut heard = Vec::new();
        let mut note = |name, outcome: std::io::Result<()>| match outcome {
            Ok(()) => heard.push(name),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{name}"),
        };
        note("tcp", self.tcp.accept().map(drop));
        note("udp", self.udp.recv(&mut [0]).map(drop));
        note("path", self.named.accept().map(drop));
        note("abstract", self.abstracted.accept().map(drop));
        heard
    }
}

pub async fn no_server_is_reached(cell: &Cell) {
    let servers = Servers::start(cell);
    let finished = cell.run(&cell.script(&servers.script())).await;
    let printed = finished.stdout.text();
    assert_eq!(finished.how, ExitReason::Exited(0), "{}", finished.stderr.text());
    let words: Vec<&str> = printed.split_whitespace().collect();
    assert_eq!(words.len(), 4, "{printed}");
    assert!(words.iter().all(|word| word.starts_with('E')), "{printed}");
    assert_eq!(servers.heard(), Vec::<&str>::new());
}

#[tokio::test]
async fn without_a_grant_no_server_is_reachable() {
    needs_the_jail!();
    no_server_is_reached(&Cell::open().await).await;
}

#[tokio::test]
async fn servers_are_reachable_outside_the_jail() {
    needs_the_jail!();
    // This shows that the jail causes the silence above.
    let cell = Cell::open().await;
    let servers = Servers::start(&cell);
    let order = cell.script(&servers.script());
    let output = std::process::Command::new(&order.program).args(&order.arguments).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(printed.matches("sent").count() >= 3, "{printed}");
    assert_eq!(servers.heard(), ["tcp", "udp", "path", "abstract"]);
}

#[tokio::test]
async fn no_kind_of_socket_leads_around_the_network() {
    needs_the_jail!();
    let cell = Cell::open().await;
    // To the host of a virtual machine, raw, packet, kernel sockets, and some kinds with past
    // exploits.
    let script = "print([error(socket.socket, f, k, p) if True else 0 for f, k, p in ((40, 1, 0), (2, 3, 1), (17, 3, 0), (16, 3, 9), (16, 3, 15), (38, 5, 0), (31, 3, 1), (29, 3, 1))])\n\
                  print(error(socket.getaddrinfo, 'example.com', 80)[:1] != 'n', [i[1] for i in socket.if_nameindex()])";
    let finished = cell.run(&cell.script(script)).await;
    let printed = finished.stdout.text();
    let (sockets, rest) = printed.split_once('\n').unwrap();
    let refused: Vec<&str> = sockets.trim_matches(['[', ']']).split(", ").map(|name| name.trim_matches('\'')).collect();
    assert_eq!(
        refused,
        [
            "EAFNOSUPPORT",
            "EPERM",
            "EAFNOSUPPORT",
            "EAFNOSUPPORT",
            "EAFNOSUPPORT",
            "EAFNOSUPPORT",
            "EAFNOSUPPORT",
            "EAFNOSUPPORT"
        ],
        "{printed} {}",
        finished.stderr.text()
    );
    assert_eq!(rest, "True ['lo']\n");
}

#[tokio::test]
async fn grant_opens_the_network_and_nothing_else() {
    needs_the_jail!();
    let cell = Cell::open().await;
    let servers = Servers::start(&cell);
    let mut view = FilesystemView::of_programs(true);
    view.write(&cell.work(), std::path::Path::new("/work"));
    let order = CommandSpec { network: true, view, ..cell.script(&servers.script()) };
    let finished = cell.run(&order).await;
    let printed = finished.stdout.text();
    assert!(printed.starts_with("('no error', 'sent')"), "{printed} {}", finished.stderr.text());
    let heard = servers.heard();
    assert!(heard.starts_with(&["tcp", "udp"]), "{heard:?}");
    // Sockets with a path are not visible. Abstract sockets are separated by Landlock, if the
    // kernel's version supports that.
    assert!(!heard.contains(&"path"), "{heard:?}");
    if Landlock::knows_abstract_sockets() {
        assert!(!heard.contains(&"abstract"), "{heard:?}");
    }
}

struct Landlock;

impl Landlock {
    fn knows_abstract_sockets() -> bool {
        const ONLY_THE_VERSION: usize = 1;
        let none = std::ptr::null::<u8>();
        // SAFETY: the call only queries the kernel for a number.
        #[allow(unsafe_code)]
        let version =
            unsafe { nix::libc::syscall(nix::libc::SYS_landlock_create_ruleset, none, 0_usize, ONLY_THE_VERSION) };
        version >= 6
    }
}

#[tokio::test]
async fn jail_with_network_still_holds() {
    needs_the_jail!();
    let cell = Cell::new(Jail::open(helper()).await);
    let order = CommandSpec {
        network: true,
        ..cell.shell("cat ../secret; ls /root; id -u; cat /proc/self/status | grep CapEff")
    };
    let finished = cell.run(&order).await;
    assert_eq!(finished.stdout.text(), "1000\nCapEff:\t0000000000000000\n");
}
