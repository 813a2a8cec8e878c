"""
What are people asking about? From texts to a page of topics
============================================================

A help desk has 20,000 messages from 8,000 persons. It wants to publish what they are about: a list
of topics, how many persons ask about each, and the words that they use. It must not reveal any
message or any person. All of it costs one charge of `epsilon` = 3 for each person. The messages are
synthetic.
"""

# %%
# 1. The messages
# ---------------
#
# Each person writes about one to five things, in their own words. Some of the words are rare, and a
# few must not be published: names, and words that only one person uses.

import matplotlib.pyplot as plt
import numpy as np

subjects = {
    "delivery": "parcel courier tracking arrive delayed doorstep shipment warehouse late driver",
    "refund": "refund money charged twice invoice card bank transfer amount waiting",
    "login": "password login account locked reset email code username security verify",
    "return": "return label box exchange size wrong item color shop send",
    "broken": "broken screen crack repair warranty battery charger damaged part replace",
    "app": "app crash update phone install android button freezes version bug",
    "subscription": "subscription cancel renew plan monthly yearly trial upgrade fee stop",
    "voucher": "voucher discount coupon expired checkout code gift percent offer sale",
    "address": "address street moved change postcode billing house flat city number",
    "privacy": "data delete privacy consent newsletter personal request records remove spam",
}
phrases = "hello please help thanks question problem order customer days week still get would like"
common = phrases.split()
rng = np.random.default_rng(0)  # seeds synthetic messages; never seed private noise
n, n_persons = 20_000, 8_000
person = rng.integers(n_persons, size=n)
shares = np.arange(1.0, len(subjects) + 1) ** -0.8
subject = rng.choice(len(subjects), n, p=shares / shares.sum())
words = [text.split() for text in subjects.values()]


def message(number):
    own = rng.permutation(words[subject[number]])[:5]
    text = " ".join(rng.permutation([*own, *rng.choice(common, 5)]))
    return text + (f", person{person[number]}" if number % 3 else ".")


messages = [message(number) for number in range(n)]
messages[0] += " my diagnosis is lupus"
print(*messages[1:4], sep="\n")

# %%
# 2. Embeddings
# -------------
#
# An embedding must be a function of one message alone. A fixed language model that was trained on
# other texts is one: any array with a row for each message will do. To download nothing, this page
# learns a small one from the articles on the public help pages.
#
# The same TF-IDF weights and singular value decomposition, fitted to the *messages*, would be
# wrong: each row would then depend on all messages, and the guarantee would not cover that. So
# `fit` reads the public articles, and `transform` one message after the other.

from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

articles = [" ".join([*rng.choice(each, 30), *rng.choice(common, 30)]) for each in words * 50]
embed = make_pipeline(
    TfidfVectorizer(stop_words="english"), TruncatedSVD(n_components=32, random_state=0)
).fit(articles)
X = embed.transform(messages)

# %%
# 3. Topics
# ---------
#
# `groups=person` makes a person the unit of privacy: all messages of a person together are
# protected as one. The plan lists what the fit will release, before it reads a message.

from sklearn_dp import DPTopics

model = DPTopics(n_topics=10, epsilon=3.0)
print(model.privacy_plan(n_features=32, unit="group"))

# %%
# The words are not listed in advance. A word is released in a topic if enough persons use it there,
# so a word of one person stays hidden.

model.fit(X, texts=messages, groups=person)
print("status:", model.status_, *model.messages_)
print("a word needs about", model.threshold_, "persons; found:", len(model.words_), "words")
print("lupus" in model.words_, any("person1" in word for word in model.words_))

# %%
# 4. The page
# -----------
#
# `TopicDisplay` lists the topics. All of it is made of released numbers, so it may be published.

from sklearn_dp.inspection import TopicDisplay

display = TopicDisplay.from_estimator(model)
plt.show()

# %%
# In a notebook, the display is a table. ``display.to_html()`` is a page of its own, to be written
# into a file: it has no scripts, and all words are escaped.

page = display.to_html()
print(len(page), "characters;", page.count("<i style="), "topics")
display

# %%
# 5. A public vocabulary
# ----------------------
#
# A help desk that has a glossary needs less budget. With `vocabulary` the counts of all its
# words are released, there is no threshold, and no share of `delta` is needed for words of single
# persons. The glossary must not be made from the messages.

glossary = sorted({word for text in words for word in text})
listed = DPTopics(n_topics=10, epsilon=1.0, vocabulary=glossary)
listed.fit(X, texts=messages, groups=person)
for topic in listed.topics_:
    print(f"{topic.size:7.0f} ± {1.96 * topic.size_std_error:.0f}  {topic.label}")

# %%
# 6. New messages
# ---------------
#
# `predict` finds the nearest released center. It costs nothing. For private messages, its answers
# are as private as the messages.

question = ["my parcel did not arrive, the tracking says the courier is late"]
print(model.topics_[model.predict(embed.transform(question))[0]].label)

# %%
# What it all cost, in one report:

model.privacy_report_
