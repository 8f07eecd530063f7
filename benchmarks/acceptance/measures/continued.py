"""`start=continued`: a training that goes on from the checkpoint, the optimizer and the schedule of a shorter one."""

from acceptance.command import last_line, ran, result
from acceptance.given import Answer, Given


def measure(given: Given) -> Answer:
    """The steps of both trainings, and the last loss of each."""
    answer, root, log = Answer(), given.work / "root", given.work / "log.txt"
    status = ran(given, root, "start=continued", "start.tokens=32K", "budget.tokens=64K", log=log)
    answer.expect(status == 0, last_line(log))
    if answer.wrong:
        return answer
    found = [result(path) for path in (root / "artifacts" / "training").iterdir()]
    first, second = sorted(found, key=lambda one: one["steps"])
    answer.numbers |= {"steps": [first["steps"], second["steps"]], "began at step": second["first_step"]}
    answer.numbers["final losses"] = [first["final_loss"], second["final_loss"]]
    answer.expect(second["first_step"] == first["steps"], "the second does not begin where the first ended")
    answer.expect(second["final_loss"] < first["final_loss"], "the second did not learn")
    return answer
