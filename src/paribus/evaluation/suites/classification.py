"""Classification of texts, with the label words of Min et al. 2022 (Noisy Channel Language Model Prompting).

In-Context Pretraining names that paper for its label words. Its templates and words are those of the authors' code
(github.com/shmsw25/Channel-LM-Prompting), the first template with words of its own; those of offensive tweets are ours,
as that paper has none. Amazon and Yelp are the sets of two classes.
"""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Reader, Record, index, string
from paribus.evaluation.tasks.items import Item

SENTIMENTS = ("terrible.", "great.")
TOPICS = ("World.", "Sports.", "Business.", "Technology.")
HATE = ("unrelated to hate speech.", "related to hate speech.")
OFFENSIVE = ("not offensive.", "offensive.")
ONTOLOGY = (
    "Company.", "Educational Institution.", "Artist.", "Athlete.", "Office Holder.", "Mean of Transportation.",
    "Building.", "Natural Place.", "Village.", "Animal.", "Plant.", "Album.", "Film.", "Written Work.",
)  # fmt: skip


def reader(field: str, template: str, words: tuple[str, ...]) -> Reader:
    """A reader of records with a text and a label (index of a word): the text, the template, the word.

    A text may be empty: there is such a tweet in the training split of hate.
    """

    def item(name: str, record: Record) -> Item:
        query = f"{string(record, field).strip()} {template}".strip()
        return Item(name, query, words, index(record, "label", words))

    return item


def _benchmark(name: str, split: str, item: Reader, hub: Hub) -> Benchmark:
    return Benchmark(name, split, item, BenchmarkPrompt(f"{name} {split}, label words of Min et al. 2022"), hub)


SST2 = _benchmark("sst2", "validation", reader("sentence", "It was", SENTIMENTS), Hub("nyu-mll/glue", "sst2"))
AMAZON = _benchmark(
    "amazon", "test", reader("content", "It was", SENTIMENTS), Hub("fancyzhx/amazon_polarity", train=False)
)
YELP = _benchmark("yelp", "test", reader("text", "It was", SENTIMENTS), Hub("fancyzhx/yelp_polarity", train=False))
TWEET_HATE = _benchmark("tweet_hate", "test", reader("text", "This is", HATE), Hub("cardiffnlp/tweet_eval", "hate"))
TWEET_OFFENSIVE = _benchmark(
    "tweet_offensive", "test", reader("text", "This is", OFFENSIVE), Hub("cardiffnlp/tweet_eval", "offensive")
)
AG_NEWS = _benchmark("ag_news", "test", reader("text", "Topic:", TOPICS), Hub("fancyzhx/ag_news", train=False))
DBPEDIA = _benchmark("dbpedia", "test", reader("content", "Topic:", ONTOLOGY), Hub("fancyzhx/dbpedia_14", train=False))
CLASSIFICATION = (AMAZON, SST2, YELP, TWEET_HATE, TWEET_OFFENSIVE, AG_NEWS, DBPEDIA)
