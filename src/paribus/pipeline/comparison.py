"""From the runs of a command to the comparison table, through records alone."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from paribus.config.arguments import Command
from paribus.config.compose import Composition, compose_command
from paribus.config.identity import everything
from paribus.pipeline.equality import run_identity
from paribus.pipeline.layout import Layout
from paribus.pipeline.prepare import PreparedRun, describe_sweep, prepare
from paribus.pipeline.recorder import read_record
from paribus.pipeline.vocabularies import compare_vocabularies
from paribus.tracking.destination import Destination
from paribus.tracking.events import FILE_NAME, EventLog
from paribus.tracking.follower import Follower

if TYPE_CHECKING:
    from paribus.reporting.frame import MissingRun, RunRecord

EXIT_INCOMPLETE = 1
MEASURING_STAGES = ("checkpoints", "scores")


def report_command(command: Command, console: Console) -> int:
    """Write the report of a command's runs and print the table; 1 when a run of it is not done."""
    composition = compose_command(command)
    complete = compare(composition, prepare(composition, tolerate_missing=True), console)
    return 0 if complete else EXIT_INCOMPLETE


def compare(composition: Composition, runs: Sequence[PreparedRun], console: Console) -> bool:
    """Write the report, print the table and show it in the tracker; whether every run was there."""
    from paribus.reporting.report import write_report

    config = composition.jobs[0].config
    layout = Layout.of(config)
    sweep = describe_sweep(composition, runs)
    records, missing = collect(composition, runs, layout)
    experiment = config.experiment
    directory = layout.root / "reports" / f"{sweep.name.replace('/', '-')}-{sweep.id[:8]}"
    overlap = compare_vocabularies(records)
    report = write_report(
        records,
        missing=missing,
        title=experiment.title if experiment else f"Comparison by {', '.join(composition.factors) or 'run'}",
        question=experiment.question if experiment else "",
        factors=composition.factors,
        directory=directory,
        paper=experiment.paper if experiment else None,
        overlap=overlap,
    )
    console.print(report.terminal)
    console.print(f"report: {report.files['report.html']} (beside it .md, .csv, .tex)", soft_wrap=True, markup=False)
    with EventLog(layout.sweep(sweep.id) / FILE_NAME) as events:
        events.start(sweep.id, sweep.name, {"id": sweep.id, "name": sweep.name}, everything(config.tracking))
        for name, value in overlap.metrics().items() if overlap else ():
            events.metric(name, value, 0)
        events.artifact(directory, "report")
        events.end("FINISHED")
    message = Follower(layout.sweep(sweep.id), config.tracking, layout.root).finish(config.tracking.patience)
    console.print(message, style="dim", markup=False)
    if config.tracking.kind == "mlflow":
        how = Destination.resolve(config.tracking, layout.root).how_to_open
        console.print(f"see the runs in MLflow: {how}", soft_wrap=True, markup=False)
    return not missing


def collect(
    composition: Composition, runs: Sequence[PreparedRun], layout: Layout
) -> tuple[list["RunRecord"], list["MissingRun"]]:
    """Records of the finished runs, and the runs that are not finished with the reason."""
    from paribus.reporting.frame import MissingRun

    records: list[RunRecord] = []
    missing: list[MissingRun] = []
    for run in runs:
        labels = factor_labels(run, composition.factors)
        directory = layout.run(run.run_id)
        record = read_record(directory)
        if record is not None and record["status"] == "done":
            records.append(_run_record(record, _compared(record, run), labels, directory, layout))
        else:
            status = record["status"] if record else "not started"
            failure = record["failure"] if record else None
            missing.append(MissingRun(labels, f"{status}: {failure['message']}" if failure else status))
    return records, missing


def factor_labels(run: PreparedRun, factors: Sequence[str]) -> dict[str, str]:
    """The value of each factor as it was typed, else as it is configured."""
    typed = dict(override.lstrip("+").split("=", 1) for override in run.job.overrides if "=" in override)
    typed = {name.replace("/", "."): value for name, value in typed.items()}
    return {factor: typed.get(factor) or _configured(run, factor) for factor in factors}


def _configured(run: PreparedRun, factor: str) -> str:
    value: Any = everything(run.job.config)
    for part in factor.split("."):
        value = value[part]
    return str(value["kind"] if isinstance(value, dict) else value)


def _compared(record: Mapping[str, Any], run: PreparedRun) -> dict[str, Any]:
    """The recorded configuration; groups that decide nothing of the run, as the command has them.

    A run that another command made may have been given another embedder, say, which its order never asked for.
    """
    deciding = {name for node in run.nodes.values() for name in node.identity["identity"]}
    composed = run_identity(run.job.config, run.nodes)
    return {
        name: value if name in {*deciding, "fingerprints"} else composed[name]
        for name, value in record["identity"].items()
    }


def _run_record(
    record: Mapping[str, Any], config: Mapping[str, Any], labels: Mapping[str, str], directory: Path, layout: Layout
) -> "RunRecord":
    from paribus.reporting.frame import RunRecord

    artifacts = {name: layout.store.find(name, stage["key"]) for name, stage in record["stages"].items()}
    found = {name: artifact.record() for name, artifact in artifacts.items() if artifact is not None}
    training = found["checkpoints"]["result"] if "checkpoints" in found else {}
    scores, vocabulary, tokens = (artifacts.get(name) for name in ("scores", "vocabulary", "tokens"))
    return RunRecord(
        run_id=record["run_id"],
        config=config,
        factors=labels,
        environment=_environment(record, found),
        training=training,
        scores=scores.path if scores else None,
        directory=directory,
        vocabulary=vocabulary.path if vocabulary else None,
        tokens=tokens.path if tokens else None,
    )


def _environment(record: Mapping[str, Any], found: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What must agree beside the configuration: code versions, package versions, device and precision, the corpus."""
    environment = {f"code_version.{name}": str(version) for name, version in record["code_versions"].items()}
    for stage in MEASURING_STAGES:
        if stage in found:
            packages = found[stage]["provenance"]["packages"]
            environment |= {f"{stage}.packages.{name}": version for name, version in packages.items()}
            environment[f"{stage}.python"] = found[stage]["provenance"]["python"]
    training = found["checkpoints"]["result"] if "checkpoints" in found else {}
    environment |= {name: str(training[name]) for name in ("device", "precision") if name in training}
    if "corpus" in found:
        environment["digest.corpus"] = str(found["corpus"]["result"].get("digest", record["stages"]["corpus"]["key"]))
    return environment
