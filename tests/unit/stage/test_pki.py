"""Who the certificates of a start are for, who may read the keys, and that both ends of TLS accept each other."""

from __future__ import annotations

import base64
import contextlib
import datetime
import ipaddress
import json
import os
import ssl
import stat

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from e2e.cluster import pki
from e2e.cluster.layout import API_SERVICE_ADDRESS, NODE, Layout

PEM, PUBLIC = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """A stage whose certificates were written by a process that hides nothing by itself."""
    layout = Layout("trial", 7, with_node=True, root=tmp_path_factory.mktemp("cache"))
    before = os.umask(0)
    try:
        pki.write(layout)
    finally:
        os.umask(before)
    return layout


def certificate(made: Layout, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((made.pki / f"{name}.crt").read_bytes())


def subject(made: Layout, name: str) -> tuple[str, list[str | bytes]]:
    """User and groups, as Kubernetes reads them."""
    found = certificate(made, name).subject
    (user,) = found.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(user.value), [one.value for one in found.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def hosts(made: Layout, name: str) -> tuple[set[str], set[str]]:
    """Names and addresses that a server's certificate is for."""
    found = certificate(made, name).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(found.get_values_for_type(x509.DNSName)), {str(a) for a in found.get_values_for_type(x509.IPAddress)}


def public_part(made: Layout, name: str) -> bytes:
    key = serialization.load_pem_private_key((made.pki / f"{name}.key").read_bytes(), password=None)
    return key.public_key().public_bytes(PEM, PUBLIC)


def test_the_api_server_is_known_by_its_service_and_by_the_address_of_its_node(made: Layout) -> None:
    names, addresses = hosts(made, "apiserver")
    assert {"kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost"} <= names
    assert addresses == {API_SERVICE_ADDRESS, made.node_address, "127.0.0.1"}
    assert all(ipaddress.ip_address(one) for one in addresses)


def test_the_kubelet_is_known_by_its_node_and_is_a_node_to_the_node_authorizer(made: Layout) -> None:
    assert hosts(made, "node") == ({NODE}, {made.node_address})
    assert subject(made, "node") == (f"system:node:{NODE}", ["system:nodes"])


def test_the_administrator_may_do_everything(made: Layout) -> None:
    assert subject(made, "admin") == ("admin", ["system:masters"])


@pytest.mark.parametrize("name", ["controller-manager", "scheduler", "proxy"])
def test_a_component_has_its_own_name_and_no_group_that_may_do_everything(name: str, made: Layout) -> None:
    user, groups = subject(made, name)
    assert user in {"system:kube-controller-manager", "system:kube-scheduler", "system:kube-proxy"}
    assert user.endswith(name)
    assert groups == []


def test_every_key_and_kubeconfig_is_for_its_owner_alone(made: Layout) -> None:
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made.pki.iterdir()}
    private = {name: mode for name, mode in modes.items() if name.endswith((".key", ".kubeconfig"))}
    assert set(private.values()) == {0o600}
    assert len(private) == len(pki.identities(made)) + len(pki.KUBECONFIGS) + 4  # two authorities, front proxy, tokens
    for path in made.pki.iterdir():
        assert ("PRIVATE KEY" in path.read_text()) == (path.suffix == ".key")


def test_every_certificate_is_signed_by_the_cluster_and_belongs_to_its_key(made: Layout) -> None:
    authority = certificate(made, "ca")
    for name in pki.identities(made):
        certificate(made, name).verify_directly_issued_by(authority)
        assert certificate(made, name).public_key().public_bytes(PEM, PUBLIC) == public_part(made, name)


def test_the_front_proxy_has_an_authority_of_its_own_since_its_client_may_name_any_user(made: Layout) -> None:
    client = certificate(made, "front-proxy-client")
    client.verify_directly_issued_by(certificate(made, "front-proxy-ca"))
    with pytest.raises(ValueError, match="not match"):
        client.verify_directly_issued_by(certificate(made, "ca"))
    assert certificate(made, "ca").public_key() != certificate(made, "front-proxy-ca").public_key()


def test_only_authorities_may_sign(made: Layout) -> None:
    for path in made.pki.glob("*.crt"):
        extensions = certificate(made, path.stem).extensions
        if path.stem.endswith("ca"):
            assert extensions.get_extension_for_class(x509.BasicConstraints).value.ca
            assert extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign
        else:
            assert not [one for one in extensions if isinstance(one.value, x509.BasicConstraints) and one.value.ca]
            usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
            assert set(usage) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def test_certificates_hold_now_and_for_days_even_for_a_clock_that_is_minutes_behind(made: Layout) -> None:
    now = datetime.datetime.now(datetime.UTC)
    for path in made.pki.glob("*.crt"):
        found = certificate(made, path.stem)
        assert found.not_valid_before_utc < now - datetime.timedelta(minutes=30)
        assert found.not_valid_after_utc > now + datetime.timedelta(days=7)


def test_tokens_are_checked_with_the_public_part_of_the_key_that_signs_them(made: Layout) -> None:
    assert (made.pki / "service-accounts.pub").read_bytes() == public_part(made, "service-accounts")


@pytest.mark.parametrize("user", pki.KUBECONFIGS)
def test_a_kubeconfig_names_the_server_its_authority_and_its_user(user: str, made: Layout) -> None:
    config = json.loads((made.pki / f"{user}.kubeconfig").read_text())
    (context,), (cluster,), (one,) = config["contexts"], config["clusters"], config["users"]
    assert cluster["cluster"]["server"] == f"https://{made.node_address}:6443"
    assert config["current-context"] == context["name"]
    assert context["context"] == {"cluster": cluster["name"], "user": one["name"]}
    data = {
        "ca.crt": cluster["cluster"]["certificate-authority-data"],
        f"{user}.crt": one["user"]["client-certificate-data"],
        f"{user}.key": one["user"]["client-key-data"],
    }
    for name, encoded in data.items():
        assert base64.b64decode(encoded) == (made.pki / name).read_bytes()


def test_the_kubeconfig_of_the_layout_is_the_administrators(made: Layout) -> None:
    assert json.loads(made.kubeconfig.read_text())["users"][0]["name"] == "admin"


def test_each_start_has_keys_of_its_own(made: Layout, layout: Layout) -> None:
    pki.write(layout)
    assert (layout.pki / "ca.key").read_bytes() != (made.pki / "ca.key").read_bytes()


def shake_hands(client: ssl.SSLObject, server: ssl.SSLObject) -> None:
    """Carry out a TLS handshake, each end in turn; raises what either objects to."""
    done = set()
    for _ in range(10):
        for end in (client, server):
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
                done.add(end)
    assert done == {client, server}


def tls(made: Layout, address: str, authority: str = "ca") -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Ends of a connection from the administrator to the API server, after the handshake."""
    at_client = ssl.create_default_context(cafile=str(made.pki / f"{authority}.crt"))
    at_client.verify_flags |= ssl.VERIFY_X509_STRICT  # what Python 3.13 and newer demand by themselves
    at_client.load_cert_chain(made.pki / "admin.crt", made.pki / "admin.key")
    at_server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(made.pki / "ca.crt"))
    at_server.verify_flags |= ssl.VERIFY_X509_STRICT
    at_server.verify_mode = ssl.CERT_REQUIRED
    at_server.load_cert_chain(made.pki / "apiserver.crt", made.pki / "apiserver.key")
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = at_client.wrap_bio(down, up, server_hostname=address)
    server = at_server.wrap_bio(up, down, server_side=True)
    shake_hands(client, server)
    return client, server


@pytest.mark.parametrize("address", ["198.18.0.30", API_SERVICE_ADDRESS, "kubernetes.default.svc"])
def test_a_strict_client_and_the_api_server_accept_each_other(address: str, made: Layout) -> None:
    client, server = tls(made, address)
    seen = server.getpeercert()
    assert seen is not None
    assert (("commonName", "admin"),) in tuple(seen["subject"])
    assert client.version() == "TLSv1.3"


def test_a_client_refuses_a_server_that_another_authority_vouches_for_or_that_is_elsewhere(made: Layout) -> None:
    with pytest.raises(ssl.SSLCertVerificationError, match=r"certificate in certificate chain|local issuer"):
        tls(made, made.node_address, authority="front-proxy-ca")
    with pytest.raises(ssl.SSLCertVerificationError, match="IP address mismatch"):
        tls(made, made.host_address)
