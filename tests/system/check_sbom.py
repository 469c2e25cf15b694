"""The bill of materials names each library that the programs link, and nothing that is not there.

usage: check_sbom.py FILE PROGRAM...
"""

import json
import re
import shutil
import subprocess
import sys

# Of the C library and the compiler, which every program on the system has; and of sanitizers.
OF_SYSTEM = r"^(libc|libm|libgcc_s|libpthread|ld-linux.*|libasan|libubsan|libtsan|libgcov)\.so"
NAMES = {"libgnutls": "gnutls", "libjq": "jq", "libyaml": "yaml-0.1", "libmimalloc": "mimalloc"}


def main(path, programs):
    if not shutil.which("readelf"):
        print("skipped: readelf is not there")
        return 77
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    faults = []
    ids = ["SPDXRef-DOCUMENT"] + [package["SPDXID"] for package in document["packages"]]
    if document["spdxVersion"] != "SPDX-2.3" or len(ids) != len(set(ids)):
        faults.append("it is no SPDX 2.3, or an id stands there twice")
    for package in document["packages"]:
        if not package["licenseDeclared"] or not re.match(r"^SPDXRef-[A-Za-z0-9.-]+$", package["SPDXID"]):
            faults.append(f"{package['name']} has no license, or no good id")
    for relationship in document["relationships"]:
        for end in (relationship["spdxElementId"], relationship["relatedSpdxElement"]):
            if end not in ids:
                faults.append(f"a relationship names {end}, which is not there")
    linked = set()
    for program in programs:
        dynamic = subprocess.run(["readelf", "-dW", program], capture_output=True, text=True, check=True).stdout
        for soname in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
            if not re.match(OF_SYSTEM, soname):
                stem = re.sub(r"(-[0-9.]+)?\.so.*", "", soname)
                linked.add(NAMES.get(stem, stem))
    names = {package["SPDXID"]: package["name"] for package in document["packages"]}
    named = {
        names.get(relationship["relatedSpdxElement"])
        for relationship in document["relationships"]
        if relationship["relationshipType"] == "DYNAMIC_LINK"
    }
    faults += [f"{name} is linked and not named" for name in sorted(linked - named)]
    faults += [f"{name} is named and not linked" for name in sorted(named - linked)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


sys.exit(main(sys.argv[1], sys.argv[2:]))
