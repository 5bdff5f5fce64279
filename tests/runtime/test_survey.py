"""What the machine's root directory is taken for, where an instance's private one is made of it."""

from pathlib import Path

from runtime.backend.local.filesystem.privatefs import RootEntry, survey


def test_a_directory_with_mounts_below_is_looked_into_whatever_they_are_called(
    tmp_path: Path,
) -> None:
    for name in ("srv/a disk/data", "srv/other", "usr", "tmp"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "bin").symlink_to("usr/bin")
    mounts = tmp_path / "mountinfo"
    mounts.write_text("30 1 8:1 / / rw - ext4 d rw\n31 30 8:2 / /srv/a\\040disk rw - ext4 d rw\n")
    assert survey(tmp_path, mounts) == [
        RootEntry("link", "/bin", "usr/bin"),
        RootEntry("bind", "/mountinfo"),
        RootEntry("directory", "/srv"),
        RootEntry("overlay", "/srv/a disk"),
        RootEntry("overlay", "/srv/other"),
        RootEntry("fresh", "/tmp"),
        RootEntry("overlay", "/usr"),
    ]
