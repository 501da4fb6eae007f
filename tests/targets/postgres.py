# SPDX-License-Identifier: Apache-2.0
"""postgres.py: a server that speaks PostgreSQL's protocol, by TLS, and has the same rows for whatever is asked.

It prints its port. Its certificate is made by the package cryptography.
"""

import datetime
import json
import os
import socket
import ssl
import struct
import tempfile

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa

ROWS = 300
# Names, and the OIDs of their types (pg_type.dat): int4, text, float8, timestamp, numeric.
COLUMNS = ((b"i", 23), (b"t", 25), (b"f", 701), (b"d", 1114), (b"n", 1700))
YEAR = datetime.datetime(2020, 1, 1)
TLS = b"S"
QUERY, TERMINATE = b"Q", b"X"


def message(kind, body):
    return kind + struct.pack("!i", 4 + len(body)) + body


READY = message(b"Z", b"I")
HELLO = message(b"R", struct.pack("!i", 0)) + message(b"S", b"client_encoding\0UTF8\0") + message(b"S", b"server_version\x0015.0\0") + READY


def row(i):
    values = (b"%d" % i, b"text %d" % i, b"%d.25" % i, b"2024-05-01 10:20:%02d.5" % (i % 60), b"%d.0001" % i)
    return message(b"D", struct.pack("!h", len(values)) + b"".join(struct.pack("!i", len(one)) + one for one in values))


def answer():
    columns = b"".join(name + b"\0" + struct.pack("!ihihih", 0, 0, oid, -1, -1, 0) for name, oid in COLUMNS)
    rows = b"".join(map(row, range(ROWS)))
    return message(b"T", struct.pack("!h", len(COLUMNS)) + columns) + rows + message(b"C", b"SELECT %d\0" % ROWS) + READY


def certificate(path):
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = made.not_valid_before(YEAR).not_valid_after(YEAR.replace(year=2090)).sign(key, hashes.SHA256())
    plain = (serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    with open(path, "wb") as out:
        out.write(key.private_bytes(serialization.Encoding.PEM, *plain) + made.public_bytes(serialization.Encoding.PEM))


def talk(client, rows):
    """Each message of so small a client comes as a whole."""
    client.recv(4096)
    client.sendall(HELLO)
    asked = client.recv(4096)
    while asked[:1] == QUERY:
        client.sendall(rows)
        asked = client.recv(4096)
    assert asked[:1] in (TERMINATE, b""), asked


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:
        certificate(os.path.join(folder, "pem"))
        context.load_cert_chain(os.path.join(folder, "pem"))
    listening = socket.create_server(("127.0.0.1", 0))
    print(json.dumps({"port": listening.getsockname()[1]}), flush=True)
    rows = answer()
    while True:
        client, _ = listening.accept()
        client.recv(8)
        client.sendall(TLS)
        with context.wrap_socket(client, server_side=True) as client:
            talk(client, rows)


main()
