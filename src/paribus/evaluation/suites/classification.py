"""Classification of texts, with the label words of Min et al. 2022 (MetaICL, arXiv 2110.15943).

In-Context Pretraining names that paper for its label words. They are those of the authors' code
(github.com/facebookresearch/MetaICL, `preprocess`), which has no templates: a text, and on a line of its own the word;
between examples two empty lines. There an offensive tweet is called `hate`. Of the texts its code's own prefixes
(`sentence:` of SST-2, title and `[SEP]` of Amazon) are left out. Amazon and Yelp are the sets of two classes.
"""

from paribus.evaluation.suites.benchmark import Benchmark, BenchmarkPrompt, Hub, Reader, Record, index, string
from paribus.evaluation.tasks.items import Item

SENTIMENTS = ("negative", "positive")
TOPICS = ("World", "Sports", "Business", "Sci/Tech")
HATE = ("non-hate", "hate")
OFFENSIVE = ("non-offensive", "hate")
ONTOLOGY = (
    "Company", "EducationalInstitution", "Artist", "Athlete", "OfficeHolder", "MeanOfTransportation", "Building",
    "NaturalPlace", "Village", "Animal", "Plant", "Album", "Film", "WrittenWork",
)  # fmt: skip
MIXED = 16_384
"""Records at the begin of training splits that have both classes there. DBpedia's has one class after the other, and is
fetched whole."""


def reader(field: str, words: tuple[str, ...]) -> Reader:
    """A reader of records with a text and a label (index of a word).

    A text may be empty: there is such a tweet in the training split of hate.
    """

    def item(name: str, record: Record) -> Item:
        return Item(name, string(record, field).strip(), words, index(record, "label", words))

    return item


def _benchmark(name: str, split: str, item: Reader, hub: Hub) -> Benchmark:
    source = f"{name} {split}, label words of MetaICL"
    return Benchmark(name, split, item, BenchmarkPrompt(source, target_delimiter="\n", fewshot_delimiter="\n\n\n"), hub)


SST2 = _benchmark("sst2", "validation", reader("sentence", SENTIMENTS), Hub("nyu-mll/glue", "sst2"))
AMAZON = _benchmark("amazon", "test", reader("content", SENTIMENTS), Hub("fancyzhx/amazon_polarity", examples=MIXED))
YELP = _benchmark("yelp", "test", reader("text", SENTIMENTS), Hub("fancyzhx/yelp_polarity", examples=MIXED))
TWEET_HATE = _benchmark("tweet_hate", "test", reader("text", HATE), Hub("cardiffnlp/tweet_eval", "hate"))
TWEET_OFFENSIVE = _benchmark(
    "tweet_offensive", "test", reader("text", OFFENSIVE), Hub("cardiffnlp/tweet_eval", "offensive")
)
AG_NEWS = _benchmark("ag_news", "test", reader("text", TOPICS), Hub("fancyzhx/ag_news"))
DBPEDIA = _benchmark("dbpedia", "test", reader("content", ONTOLOGY), Hub("fancyzhx/dbpedia_14"))
CLASSIFICATION = (AMAZON, SST2, YELP, TWEET_HATE, TWEET_OFFENSIVE, AG_NEWS, DBPEDIA)
