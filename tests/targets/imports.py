# SPDX-License-Identifier: Apache-2.0
"""Code from a zip file, from a module imported again and again, and frozen modules."""

import os
import shutil
import sys
import tempfile
import zipfile

import expect

ZIPPED = "def helper(burn):\n    return burn()\n\n\ndef zipped(burn):\n    return helper(burn)\n"
SLOW = "import builtins_burn\nbuiltins_burn.burn()\n"


def burn():
    sum(range(8000))  # burn: hot


def zip_user():
    package.inner.zipped(burn)


def import_user():
    sys.modules.pop("slow_module", None)
    import slow_module

    return slow_module


def main():
    while True:
        zip_user()  # main > zip_user
        import_user()  # main > import_user


def line_of(text):
    with open(expect.source_of(__file__)) as source:
        return [number for number, line in enumerate(source, 1) if line.strip() == text][0]


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    folder = tempfile.mkdtemp()
    bundle = os.path.join(folder, "bundle.zip")
    with zipfile.ZipFile(bundle, "w") as archive:
        archive.writestr("package/__init__.py", "")
        archive.writestr("package/inner.py", ZIPPED)
    with open(os.path.join(folder, "slow_module.py"), "w") as module:
        module.write(SLOW)
    sys.path[:0] = [bundle, folder]
    # Without the finders that packages of this installation bring along.
    sys.meta_path[:] = [each for each in sys.meta_path if "importlib" in each.__module__]
    sys.modules["builtins_burn"] = sys.modules["__main__"]
    import package.inner

    import_user()
    wanted = expect.describe(__file__, share=0.2)
    wanted.files.update(["inner.py", "slow_module.py"])
    wanted.call("zip_user", "inner.py|zipped", line_of("package.inner.zipped(burn)"))
    wanted.call("inner.py|zipped", "inner.py|helper", 6)
    wanted.call("inner.py|helper", "burn", 2)
    wanted.call("import_user", "slow_module.py|<module>", line_of("import slow_module"))
    wanted.call("slow_module.py|<module>", "burn", 2)
    wanted.add_code(compile(ZIPPED, "inner.py", "exec"), "inner.py|")
    wanted.add_code(compile(SLOW, "slow_module.py", "exec"), "slow_module.py|")
    wanted.through = ["importlib._bootstrap>", "importlib._bootstrap_external>", "zipimport>"]
    # The frozen modules lie between the import and the module's code; Python 2 imports in C.
    wanted.more["frozen"] = sys.version_info[0] > 2
    # Python code that the import system itself calls.
    wanted.through += ["codecs.py", "genericpath.py"]
    expect.at_end(shutil.rmtree, folder)
    expect.ready(wanted)
    main()  # <module> > main
