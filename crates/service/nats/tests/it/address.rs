use rcrt_nats::Address;

#[test]
fn an_address_has_a_host_and_hides_its_credentials() {
    for (text, shown) in [
        ("nats://localhost", "localhost:4222"),
        ("tls://user:secret@nats.example.com:4223", "nats.example.com:4223"),
        ("nats://a%2Ftoken@10.0.0.5", "10.0.0.5:4222"),
        ("nats://[::1]:4222", "::1:4222"),
    ] {
        assert_eq!(format!("{:?}", text.parse::<Address>().unwrap()), shown);
    }
    for wrong in ["localhost:4222", "http://localhost", "nats://", "", "nats:4222"] {
        let error = wrong.parse::<Address>().unwrap_err().to_string();
        assert!(error.contains("nats://host:4222"), "{wrong}: {error}");
    }
}
