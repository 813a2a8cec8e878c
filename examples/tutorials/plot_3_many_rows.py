"""
When one person has many rows, in one table or on many phones
=============================================================

For two weeks, 2,000 people keep a diary of how much they sleep and walk. What habits do they have?
Each person has 14 rows, and the person has to be protected, not the day. In the first part all
diaries are in one table. In the second, they never leave the phones.

The diaries are synthetic, so they can be shown.
"""

# %%
# The diaries
# -----------
#
# There are three kinds of days, and most days of a person are of the same kind. The limits are
# public: nobody sleeps more than 24 hours a day, or walks more than 40 kilometers.

import matplotlib.pyplot as plt
import numpy as np

rng = np.random.default_rng(0)  # seeds synthetic diaries; never seed private noise
habits = np.array([[7.5, 3.0], [6.0, 9.0], [9.0, 1.5]])
n_people, n_days = 2_000, 14
person = np.repeat(np.arange(n_people), n_days)
usual = rng.integers(3, size=n_people)[person]
kind = np.where(rng.random(len(person)) < 0.8, usual, rng.integers(3, size=len(person)))
days = habits[kind] + rng.normal(size=(len(person), 2)) * [0.6, 0.8]
days = np.clip(days, [0, 0], [24, 40])
bounds = ([0.0, 0.0], [24.0, 40.0])

figure, axis = plt.subplots(figsize=(5.5, 4), layout="constrained")
axis.scatter(*days[::20].T, s=4, color="0.6", label="some days")
axis.scatter(*days[person == 7].T, s=30, color="C1", label="the days of one person")
axis.set(xlabel="hours of sleep", ylabel="kilometers")
axis.legend()

# %%
# The mistake
# -----------
#
# By default a row is protected, which here is one day of one person. For the person, that is a weak
# guarantee. `group_privacy` shows how weak: what epsilon = 1 guarantees for one day is worth almost
# nothing for a person with 14 days.

from sklearn_dp import DPKMeans
from sklearn_dp.accounting import PureDP, group_privacy

by_day = DPKMeans(n_clusters=3, epsilon=1.0, bounds=bounds).fit(days)
print(group_privacy(PureDP(1.0), size=n_days))

# %%
# Identify the persons
# --------------------
#
# With `groups`, epsilon = 1 protects the whole person. The report names the unit.

by_person = DPKMeans(n_clusters=3, epsilon=1.0, bounds=bounds).fit(days, groups=person)
by_person.privacy_report_

# %%
# The cost: the noise has to hide 14 rows instead of one. A fit reports how far off each released
# center may be.

figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for shift, color, protected, model in (
    (-0.2, "C0", "a day", by_day),
    (0.2, "C1", "a person", by_person),
):
    errors = model.cluster_centers_std_error_.mean(axis=1)
    axis.bar(
        np.arange(3) + shift, errors, width=0.35, color=color, label=f"{protected} is protected"
    )
axis.set_xticks(range(3), [f"center {number}" for number in (1, 2, 3)])
axis.set(ylabel="standard error", title="Standard error of a center")
axis.legend()

for protected, model in (("day", by_day), ("person", by_person)):
    print(f"a {protected} is protected: {model.cluster_weights_.sum():.0f} of them")

# %%
# 2,000 people are enough for both, because the habits are kilometers apart. The cluster weights
# count the protected unit, days or people, and are noisy too.
#
# Leave the diaries on the phones
# -------------------------------
#
# Now nobody has the whole table. Each phone answers a few queries from a server with integers, and
# noise is added to their sum. To begin, the server needs some public points: here, guesses of
# what days may look like. They must not come from the phones.

from sklearn_dp import FederatedDPKMeans

guesses = np.column_stack([rng.uniform(4, 11, size=60), rng.uniform(0, 12, size=60)])


def phone(number):
    """A function that returns the rows of one phone; only the phone itself calls it."""
    return lambda: days[person == number]


phones = [phone(number) for number in range(n_people)]
federated = FederatedDPKMeans(n_clusters=3, epsilon=1.0, bounds=45.0, privacy_unit="client")
federated.fit_clients(phones, X_server=guesses)
print(federated.status_, *federated.messages_)

# %%
# What was sent: a few numbers in each round, whatever is in a diary.

for message in federated.communication_:
    print(
        f"{message['kind']:8} {message['bytes_down']:6} bytes to a phone, "
        f"{message['bytes_up']:5} bytes back"
    )

# %%
# All three results, and the habits that the diaries were generated from.

figure, axis = plt.subplots(figsize=(6, 4.4), layout="constrained")
axis.scatter(*habits.T, s=160, facecolors="none", edgecolors="0.2", label="truth")
for model, mark, color, name in (
    (by_day, "+", "C0", "table, a day is protected"),
    (by_person, "x", "C1", "table, a person is protected"),
    (federated, "1", "C2", "phones, a person is protected"),
):
    axis.scatter(*model.cluster_centers_.T, s=90, marker=mark, color=color, label=name)
axis.set(xlabel="hours of sleep", ylabel="kilometers")
axis.legend(loc="upper right")

# %%
# The server is trusted here: it sees the sums before it adds the noise. :doc:`Federated k-means
# </federated>` explains how to do without that trust, and :doc:`Flower </flower>` how to use real
# phones.
