"""Who carries messages to the clients and sums their answers."""

import warnings
from functools import partial

import numpy as np

from .._aggregate.shared.blocks import ask_all
from .._privacy._shares import NoiseShares
from ..exceptions import UtilityWarning
from ._protocol import ANSWERS, AnswerError, check_answer, client_update, read_rows

__all__ = ["LocalEngine", "run_rounds", "total_of"]


class LocalEngine:
    """Clients of this process, asked through joblib.

    Parameters
    ----------
    clients : sequence
        For each client its rows, or a function without arguments that returns them; or an object
        with a method ``update(kind, message)`` that answers by itself.
    n_jobs : int, optional
    seconds : float, optional
        After which a client that does not answer is given up.
    """

    def __init__(self, clients, n_jobs=None, seconds=None):
        self.clients, self.n_jobs, self.seconds = clients, n_jobs, seconds
        self.seed_shares(None)

    def seed_shares(self, seed):
        """Make the clients' shares of the noise reproducible, for tests; None: they are not."""
        self.shares = [NoiseShares(seed, number) for number in range(len(self.clients))]

    def ask(self, kind, message):
        """Pairs (answer, error) of all clients, in their order."""
        return ask_all(partial(_answer, kind, message),
                       list(zip(self.clients, self.shares, strict=True)), n_jobs=self.n_jobs,
                       seconds=self.seconds)


def _answer(kind, message, client_and_shares):
    client, shares = client_and_shares
    if hasattr(client, "update") and not hasattr(client, "shape"):
        return client.update(kind, message)
    rows = read_rows(message, client) if callable(client) else client
    return client_update(kind, message, rows, shares)


def total_of(kind, message, answers):
    """The sum of the answers, and which clients gave none that can be used.

    Parameters
    ----------
    kind : str
    message : dict of str to ndarray
    answers : iterable of (answer, error)

    Returns
    -------
    total : dict of str to ndarray of int64
    failed : list of (int, str)
        Number of the client, and why.

    Notes
    -----
    A client without a usable answer counts as one that holds nothing. Noise that the server adds
    does not depend on how many there are, so the guarantee stands; at row level only if a client
    does not fail *because of* single rows. Noise that clients add is less without theirs, so too
    few answers end the fit.
    """
    total, failed = None, []
    for number, (answer, error) in enumerate(answers):
        try:
            if error is not None:
                raise error
            answer = check_answer(kind, message, answer)
        except AnswerError as wrong:
            failed.append((number, str(wrong)))
            continue
        except Exception as broken:  # whatever a client dies of is no reason to stop a fit
            # Its name alone: its words may quote rows.
            failed.append((number, type(broken).__name__))
            continue
        total = answer if total is None else {name: total[name] + answer[name] for name in total}
    return total, failed


def run_rounds(state, update, session, engine, progress=None):
    """Go through all the rounds.

    Parameters
    ----------
    state : State
        Of :func:`first_message`.
    update : callable
        :func:`server_update`.
    session : PrivacySession
    engine : object with a method ``ask(kind, message)``
    progress : callable, optional
        Called with the kind of each round when it is done.

    Returns
    -------
    state : State
        After the last round.
    communication : list of dict
        Floats and bytes of a client in each round, from public shapes.
    """
    communication = []
    while state.message is not None:
        kind, message = state.kind, state.message
        answers = list(engine.ask(kind, message))
        total, failed = total_of(kind, message, answers)
        if failed:
            _warn_of(kind, failed)
        nobody = _nothing(kind, message | {"noise": np.empty(0)})
        communication.append(_traffic(state.round, kind, message, nobody))
        state = update(state, nobody if total is None else total, session,
                       len(answers) - len(failed))
        if progress is not None:
            progress(f"round {kind}")
    return state, communication


def _nothing(kind, message):
    """The answer of a client without rows; its shapes are public."""
    return client_update(kind, message, np.empty((0, len(message["center"]))))


def _traffic(number, kind, message, answer):
    """What a client receives and sends: 8 bytes a number, as it is sent without compression."""
    down = sum(np.asarray(value).size for value in message.values())
    up = sum(answer[name].size for name in ANSWERS[kind])
    return {"round": number, "kind": kind, "numbers_down": down, "numbers_up": up,
            "bytes_down": 8 * down, "bytes_up": 8 * up}


def _warn_of(kind, failed):
    """For whoever runs the fit, and no part of the model: which clients gave nothing."""
    shown = "; ".join(f"client {number}: {reason}" for number, reason in failed[:5])
    more = f"; and {len(failed) - 5} more" if len(failed) > 5 else ""
    warnings.warn(f"round {kind!r}: no usable answer from {len(failed)} clients, which count as "
                  f"empty ({shown}{more})", UtilityWarning, stacklevel=2)
