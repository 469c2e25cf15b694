#!/usr/bin/env python3
"""Writes what sagad is made of as SPDX 2.3 JSON: the programs, the libraries that the build has found, and the packages
that the console embeds. The build calls it (meson.build), so that the versions are those of the build.

usage: sbom.py --version TEXT --out FILE --lock tools/console/package-lock.json [--console] NAME=VERSION...
"""

import argparse
import datetime
import hashlib
import json
import os
import sys

# Each library that the programs link, under its name for meson. A library without a row fails the build.
LICENSES = {
    "gnutls": "LGPL-2.1-or-later",
    "jq": "MIT",
    "libcjson": "MIT",
    "libcrypto": "Apache-2.0",
    "libcurl": "curl",
    "libmicrohttpd": "LGPL-2.1-or-later",
    "libpq": "PostgreSQL",
    "libuv": "MIT",
    "mimalloc": "MIT",
    "yaml-0.1": "MIT",
}
EMBEDDED = ["preact"]  # of the packages of the console; the others only build it or test it


def package(name, version, license, purpose):
    text = {
        "SPDXID": "SPDXRef-" + name.replace("_", "-"),
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "licenseConcluded": license,
        "licenseDeclared": license,
        "copyrightText": "NOASSERTION",
        "primaryPackagePurpose": purpose,
    }
    if version != "unknown":
        text["versionInfo"] = version
    return text


def relationship(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", required=True)
    parser.add_argument("--lock", required=True)
    parser.add_argument("--console", action="store_true")
    parser.add_argument("libraries", nargs="+")
    options = parser.parse_args()
    sagad = package("sagad", options.version, "Apache-2.0", "APPLICATION")
    packages, relationships = [sagad], [relationship("SPDXRef-DOCUMENT", "DESCRIBES", sagad["SPDXID"])]
    for name, version in sorted(library.split("=", 1) for library in options.libraries):
        if name not in LICENSES:
            sys.exit(f"sbom.py: the library {name} has no license here; add it to LICENSES")
        packages.append(package(name, version, LICENSES[name], "LIBRARY"))
        relationships.append(relationship(sagad["SPDXID"], "DYNAMIC_LINK", packages[-1]["SPDXID"]))
    if options.console:
        with open(options.lock, encoding="utf-8") as file:
            locked = json.load(file)["packages"]
        for name in EMBEDDED:
            row = locked["node_modules/" + name]
            packages.append(package(name, row["version"], row["license"], "LIBRARY"))
            packages[-1]["comment"] = "embedded in the console; integrity " + row["integrity"]
            relationships.append(relationship(sagad["SPDXID"], "CONTAINS", packages[-1]["SPDXID"]))
    # The same sources and libraries give the same bytes: the date is that of the release, where the build says it.
    made = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), datetime.timezone.utc)
    digest = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": "sagad-" + options.version,
        "documentNamespace": f"https://spdx.org/spdxdocs/sagad-{options.version}-{digest}",
        "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": ["Tool: sagad-sbom"]},
        "packages": packages,
        "relationships": relationships,
    }
    with open(options.out, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=2)
        file.write("\n")


main()
