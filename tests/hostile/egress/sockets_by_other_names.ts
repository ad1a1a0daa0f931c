/**
 * Other ways to open a connection: sockets, event streams, beacons, peer connections, workers.
 *
 * status: success
 * output: []
 * permissions: {"net": ["api.test:{{port}}"]}
 */
export async function execute(): Promise<string[]> {
  return ["WebSocket", "WebSocketStream", "EventSource", "XMLHttpRequest", "WebTransport", "RTCPeerConnection", "Worker", "connect",
    "TCPSocket", "UDPSocket"].filter((name) => name in globalThis || name in (globalThis as any).fetch);
}
