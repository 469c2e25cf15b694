"""Called by pip and by `python3 -m build` (PEP 517): what to build is here, and build.py builds it."""

import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent
# In the repository build.py lies above, in an archive of the sources beside this file.
sys.path.insert(0, str(next(folder for folder in (SOURCE, *SOURCE.parents) if (folder / "build.py").exists())))

from build import Backend  # noqa: E402

build_wheel, build_sdist = Backend(SOURCE).build_wheel, Backend(SOURCE).build_sdist
