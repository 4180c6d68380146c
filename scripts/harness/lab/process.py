# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that are started here: those that end soon, and those that may not outlive us."""
import ctypes
import signal
import subprocess

PR_SET_PDEATHSIG = 1


class SetupError(Exception):
    """Something that a scenario needs is missing or does not work."""


def die_with_parent(signum=signal.SIGTERM):
    """For preexec_fn: this child gets the signal when the thread that started it ends."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signum)


def run(args, timeout=180, check=True, **more):
    """A command that ends soon. Its output, or SetupError with what it said."""
    try:
        # A session of its own: Ctrl-C is for this program, which then ends things in order.
        done = subprocess.run(args, capture_output=True, text=True, timeout=timeout, check=False,
                              stdin=subprocess.DEVNULL, start_new_session=True, **more)
    except FileNotFoundError:
        raise SetupError(f"{args[0]}: not found") from None
    except subprocess.TimeoutExpired:
        raise SetupError(f"{' '.join(args)}: no end within {timeout} s") from None
    if check and done.returncode:
        said = (done.stderr or done.stdout).strip()
        raise SetupError(f"{' '.join(args)}: exit status {done.returncode}: {said}")
    return done.stdout


def end(process, patience_s=10):
    """Ends a process that was started here."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(patience_s)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
