"""Where the gates of this host are: the directory, and the file of a gate.

Processes meet in a gate if they use the same directory. So it must not depend on what differs between a terminal, cron,
ssh, a systemd unit and sudo. It is a function of the user and the host alone:

    $FAIRGATE_DIR                             if it is set, then
    /run/fairgate/USER-ID                     if an administrator created /run/fairgate (`fairgate setup`), else
    HOME/.local/state/fairgate/MACHINE-ID     if the home directory of the passwd entry is on a local file system, else
    /tmp/fairgate-USER-ID

A directory that cannot be used is refused. The next one is no substitute: other processes might be able to use the
first one. For the same reason a gate is refused while it is in use in another one of these directories.
"""

from __future__ import annotations

import os
import stat

from fairgate.arguments import LONGEST_NAME, check_name
from fairgate.errors import BadInput
from fairgate.room import system
from fairgate.room.folder import Folder, current_folder, mount_of, open_folder, resolved, why_not_local
from fairgate.room.room import SUFFIX

RUN = "/run/fairgate"
RUN_MODE = 0o1777
TMP = "/tmp"
OWN_TMP = b"/systemd-private-"  # in the path of the /tmp of a unit with PrivateTmp=
NO_MACHINE_ID = "this-machine"  # the home directory is local, so no other machine uses it
ANOTHER = "(FAIRGATE_DIR can name another directory)"
LONGEST_PATH = 4000


def gates_folder(create: bool = True) -> str:
    """The directory in which the processes of this user on this host meet. Raises BadInput if it cannot be used.

    It is created if necessary, unless `create` is false.
    """
    return choose(create).path


def locate(name: str, create: bool = True) -> tuple[str, str]:
    """The folder and the name of a gate, for Room(). A name with a slash is the path of the gate's file.

    Raises BadInput if there can be no such gate. If `create` is false, the gate is only looked at: then it may also be
    in use in another place.
    """
    by_path = isinstance(name, str) and "/" in name
    check_name(name, LONGEST_PATH if by_path else LONGEST_NAME)
    if by_path:
        folder, file = os.path.split(name)
        if file in ("", ".", ".."):
            raise BadInput(f"{name} is a directory: add a file name to it")
        folder = resolved(folder or "/").rstrip("/")
        return folder or "/", f"{folder}/{file}"
    choice = choose(create)
    if create:
        choice.refuse_rivals(name)
    return choice.path, name


def gates_in(folder: str) -> list[str]:
    """The names of the gates that have a file there, in alphabetical order."""
    with os.scandir(folder) as entries:
        files = [one.name for one in entries if one.name.endswith(SUFFIX) and one.is_file(follow_symlinks=False)]
    return sorted([file.removesuffix(SUFFIX) for file in files])


# The choice.


class Choice:
    """The chosen directory, why it is the one, and others that a process of this user may have chosen before."""

    def __init__(self, path: str, why: str, rivals: tuple[str, ...] = ()) -> None:
        self.path = path
        self.why = why
        self.rivals = rivals

    def refuse_rivals(self, gate: str) -> None:
        """Raises BadInput if the gate is in use in another place, or may be."""
        for other in self.rivals:
            why = why_in_use(other, gate)
            if why:
                raise BadInput(
                    f"gate {gate} {why}, but belongs in {self.path} now, because {self.why}: stop the processes that"
                    f" use it there, or set FAIRGATE_DIR={other}"
                )


def choose(create: bool = True) -> Choice:
    """The directory for this process. Raises BadInput if it cannot be used."""
    given = os.environ.get("FAIRGATE_DIR")
    if given:
        return Choice(given_folder(given, create), "FAIRGATE_DIR is set")
    return Places(os.geteuid()).choose(create)


def given_folder(given: str, create: bool) -> str:
    path = given if given.startswith("/") else f"{current_folder()}/{given}"
    if create:
        make_private(path)
    return resolved(path) if create or os.path.lexists(path) else path


def make_private(path: str) -> None:
    """Create a directory and those above it, all with mode 0700, unless there is one. Raises BadInput."""
    try:
        if not os.path.isdir(path):
            make_private(os.path.dirname(path))
            os.mkdir(path, 0o700)
    except FileExistsError:  # another process was faster, or it is no directory: then it cannot be opened as one
        pass
    except OSError as wrong:
        raise BadInput(f"cannot create {path}: {wrong.strerror} {ANOTHER}") from wrong


class Places:
    """The directories of one user on this host. The arguments other than the user are for tests."""

    def __init__(
        self, user: int, home: str | None = None, machine: str | None = None, run: str = RUN, tmp: str = TMP
    ) -> None:
        self.user = user
        self.run = run
        self.tmp = tmp
        self.home = home_of(user) if home is None else home
        self.machine = (system.machine_id() if machine is None else machine) or NO_MACHINE_ID

    def in_run(self) -> str:
        return f"{self.run}/{self.user}"

    def in_home(self) -> str:
        return f"{self.home}/.local/state/fairgate/{self.machine}"

    def in_tmp(self) -> str:
        return f"{self.tmp}/fairgate-{self.user}"

    def choose(self, create: bool = True) -> Choice:
        """The first one of these whose condition holds. Raises BadInput if it cannot be used."""
        path, why = self.first()
        if create:
            make_private(path)
        if create or os.path.lexists(path):
            self.check(path)
        rivals = [other for other in (self.in_run(), self.in_home(), self.in_tmp()) if other != path]
        return Choice(path, why, tuple(rivals))

    def first(self) -> tuple[str, str]:
        if self.is_run_there():
            return self.in_run(), f"there is {self.run}"
        wrong = self.why_home_is_not_local()
        if not wrong:
            return self.in_home(), f"there is no {self.run}, and {self.home} is on a local file system"
        self.check_tmp()
        return self.in_tmp(), f"there is no {self.run}, and {self.home} cannot hold gates: {wrong}"

    def is_run_there(self) -> bool:
        """Raises BadInput if it is there and not as it should be."""
        try:
            found = os.lstat(self.run)
        except FileNotFoundError:
            return False
        except OSError as wrong:
            raise BadInput(f"cannot use {self.run}: {wrong.strerror} {ANOTHER}") from wrong
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or stat.S_IMODE(found.st_mode) != RUN_MODE:
            raise BadInput(
                f"{self.run} must be a directory of root with mode {RUN_MODE:o}: an administrator can correct that"
                f" (fairgate setup --print-tmpfiles) {ANOTHER}"
            )
        return True

    def why_home_is_not_local(self) -> str:
        """Raises BadInput if there is no home: it may be there for another process of this user."""
        if not self.home:
            raise BadInput(f"user {self.user} has no home directory: set FAIRGATE_DIR")
        try:
            fd = open_folder(self.home)
        except OSError as wrong:
            raise BadInput(f"cannot use the home directory {self.home}: {wrong.strerror} {ANOTHER}") from wrong
        try:
            return why_not_local(fd)
        finally:
            os.close(fd)

    def check_tmp(self) -> None:
        """Raises BadInput if other processes of this user have another /tmp."""
        with Folder(self.tmp) as folder:
            if OWN_TMP in mount_of(folder.fd):
                raise BadInput(f"this systemd unit has a {self.tmp} of its own (PrivateTmp=): set FAIRGATE_DIR")

    def check(self, path: str) -> None:
        """Raises BadInput unless it is a private directory of this user."""
        try:
            found = os.lstat(path)
        except OSError as wrong:
            raise BadInput(f"cannot use {path}: {wrong.strerror} {ANOTHER}") from wrong
        mode = stat.S_IMODE(found.st_mode)
        if not stat.S_ISDIR(found.st_mode):
            raise BadInput(f"cannot use {path}: it is not a directory {ANOTHER}")
        if found.st_uid != self.user:
            raise BadInput(f"cannot use {path}: it belongs to user {found.st_uid}, not to you ({self.user}) {ANOTHER}")
        if mode != 0o700:
            raise BadInput(f"cannot use {path}: it has mode {mode:04o}, not 0700; correct that with chmod 700 {path}")


def home_of(user: int) -> str:
    """The home directory of the passwd entry, or ""."""
    import pwd  # noqa: PLC0415 (most processes have FAIRGATE_DIR, or ask once)

    try:
        return pwd.getpwuid(user).pw_dir.rstrip("/")
    except KeyError:
        return ""


def why_in_use(folder: str, gate: str) -> str:
    """That the gate in this folder is in use, or may be, else "". A process that has it open may use it at any time."""
    path = f"{folder}/{gate}{SUFFIX}"
    try:
        if os.stat(folder).st_uid != os.geteuid():
            return ""  # no process of ours has ever been able to use it
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except OSError as wrong:
        return f"may be in use in {folder} ({wrong.strerror})"
    from fairgate.room.host import look_at  # noqa: PLC0415 (such a file is rare)

    try:
        found = look_at(folder, gate)
        used = system.is_open_elsewhere(fd) or (found is not None and found.in_use)
        return f"is in use in {folder}" if used else ""
    except BadInput as wrong:
        return f"may be in use in {folder} ({wrong})"
    finally:
        os.close(fd)
