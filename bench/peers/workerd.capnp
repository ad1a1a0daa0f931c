using Workerd = import "/workerd/workerd.capnp";

const config :Workerd.Config = (
  services = [(
    name = "add",
    worker = (modules = [(name = "worker", esModule = embed "workerd.js")], compatibilityDate = "2026-11-01"),
  )],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "add")],
);
