"""A training on a machine without a C compiler: layers are left uncompiled, which the command says."""

from acceptance.command import last_line, ran
from acceptance.given import Answer, Given

WITHOUT = {"CC": "no-such-compiler", "CXX": "no-such-compiler"}
SAID = "layers are not compiled, which makes training slower: a C compiler"


def measure(given: Given) -> Answer:
    """Whether the training ended, and whether it was said."""
    answer, log = Answer(), given.work / "log.txt"
    status = ran(given, given.work / "root", "until=training", log=log, variables=WITHOUT)
    answer.expect(status == 0, last_line(log))
    said = SAID in log.read_text(encoding="utf-8")
    answer.numbers["said"] = said
    answer.expect(said == (given.device == "cuda"), "what is said of layers that are not compiled is not so")
    return answer
