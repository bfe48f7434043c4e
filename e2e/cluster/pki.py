"""Certificates and kubeconfigs of one start of the stage."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from e2e.cluster.layout import API_SERVICE_ADDRESS, NODE

if TYPE_CHECKING:
    from pathlib import Path

    from e2e.cluster.layout import Layout

VALID_FOR = datetime.timedelta(days=30)
KUBECONFIGS = ("admin", "controller-manager", "scheduler", "node", "proxy", "addons")


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority that signs the certificates of this start."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, common_name: str) -> Authority:
        """Make a self-signed authority."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _name(common_name)
        may = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        builder = _builder(name, name, key).add_extension(identifier, critical=False)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        return cls(builder.add_extension(may, critical=True).sign(key, hashes.SHA256()), key)

    def issue(self, who: Identity) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
        """Make a key and a certificate for both ends of TLS."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(who.common_name, who.organization), self.certificate.subject, key)
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH])
        # clients in Python 3.13 and newer refuse a certificate that does not name the key of its authority
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = builder.add_extension(usage, critical=False).add_extension(signer, critical=False)
        if who.hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(h) for h in who.hosts]), critical=False)
        return builder.sign(self.key, hashes.SHA256()), key


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a certificate is for: user and group as Kubernetes reads them, and the names that a server answers to."""

    common_name: str
    organization: str = ""
    hosts: tuple[str, ...] = ()


def identities(layout: Layout) -> dict[str, Identity]:
    """Everyone who has a certificate of the cluster's authority, by file name."""
    names = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", "localhost")
    api_hosts = (*names, API_SERVICE_ADDRESS, "127.0.0.1", layout.node_address)
    return {
        "apiserver": Identity("kube-apiserver", hosts=api_hosts),
        "apiserver-kubelet": Identity("kube-apiserver-kubelet-client", "system:masters"),
        "admin": Identity("admin", "system:masters"),
        "controller-manager": Identity("system:kube-controller-manager"),
        "scheduler": Identity("system:kube-scheduler"),
        "node": Identity(f"system:node:{NODE}", "system:nodes", (NODE, layout.node_address)),
        "proxy": Identity("system:kube-proxy"),
        "addons": Identity("stage-addons", "system:masters"),
    }


def write(layout: Layout) -> None:
    """Write the keys (mode 0600), certificates and kubeconfigs into `layout.pki`."""
    layout.pki.mkdir(parents=True, exist_ok=True)
    cluster, front_proxy = Authority.create("kubernetes-ca"), Authority.create("front-proxy-ca")
    _save(layout.pki, "ca", cluster.certificate, cluster.key)
    _save(layout.pki, "front-proxy-ca", front_proxy.certificate, front_proxy.key)
    _save(layout.pki, "front-proxy-client", *front_proxy.issue(Identity("front-proxy-client")))
    for name, identity in identities(layout).items():
        _save(layout.pki, name, *cluster.issue(identity))
    tokens = ec.generate_private_key(ec.SECP256R1())
    _save(layout.pki, "service-accounts", None, tokens)
    (layout.pki / "service-accounts.pub").write_bytes(
        tokens.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    for name in KUBECONFIGS:
        _write_private(layout.pki / f"{name}.kubeconfig", json.dumps(_kubeconfig(layout, name), indent=1).encode())


def _kubeconfig(layout: Layout, user: str) -> dict[str, object]:
    def data(name: str) -> str:
        return base64.b64encode((layout.pki / name).read_bytes()).decode()

    name = f"kvfence-{layout.name}"
    cluster = {"server": layout.api_server, "certificate-authority-data": data("ca.crt")}
    credentials = {"client-certificate-data": data(f"{user}.crt"), "client-key-data": data(f"{user}.key")}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }


def _save(folder: Path, name: str, certificate: x509.Certificate | None, key: ec.EllipticCurvePrivateKey) -> None:
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    _write_private(folder / f"{name}.key", private)
    if certificate:
        (folder / f"{name}.crt").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))


def _write_private(path: Path, content: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(content)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))  # clocks that differ a little
        .not_valid_after(now + VALID_FOR)
    )


def _name(common_name: str, organization: str = "") -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.COMMON_NAME, common_name)]
    if organization:
        attributes.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization))
    return x509.Name(attributes)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
