# make demo   set up and run the comparison on the embedded corpus
# make test   set up, lint, type-check and test; the slow suites have targets of their own, below
# make bench-training   training beside transformers.Trainer, on the device that is there
PYTHON ?= python3
VENV ?= .venv
# Where PyTorch comes from; for another build, for example: make demo TORCH_OPTIONS='--index-url URL'
TORCH_OPTIONS ?=
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Modules are compiled when they are first imported, and kept: compiling all that is installed takes minutes.
export PYTHONDONTWRITEBYTECODE :=
TORCH := $(shell grep '^torch==' constraints.txt)

.PHONY: demo test lint kill-matrix launcher-tests tracking-load stress cluster-tests docker-tests docker-cuda-tests bench-training gpu-bundle gpu-rehearsal package setup clean

setup: $(READY)

# PyTorch goes first and alone: resolved together with the rest, it may come as a build of several gigabytes.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check $(TORCH_OPTIONS) $(TORCH)
	$(BIN)/pip install --quiet --no-compile --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

# Two runs at once, a thread each: half of what a small model takes is imports, which know one thread only.
demo: $(READY)
	$(BIN)/paribus run experiment=demo hydra/launcher=joblib hydra.launcher.n_jobs=2 engine.threads=1
	@echo
	@echo "(commands such as mlflow and paribus are in $(BIN))"
	@echo "Next:                $(BIN)/paribus plan experiment=demo"
	@echo "  document orders:   $(BIN)/paribus run experiment=demo ordering=standard,in_context arm=bpe duplicates=minhash budget=equal_text 'corpus.sample=\$${budget.text}'"
	@echo "  your own text:     $(BIN)/paribus run experiment=demo corpus=files corpus.paths='[my/*.jsonl.zst]'"
	@echo "  equal text:        $(BIN)/paribus run experiment=demo budget=equal_text"

lint: $(READY)
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy

# Where tests write: into memory, if 4 GB of it are free and programs may be started from there, unless TMPDIR says
# otherwise. On a disk, up to half of the time is waiting until artefacts are on it, which no test needs.
TMPDIR ?= $(shell [ -w /dev/shm ] && ! grep -q '^[^ ]* /dev/shm [^ ]* [^ ]*noexec' /proc/mounts && \
  df -kP /dev/shm | awk 'NR == 2 && $$4 > 4e6' | grep -q . && awk '/^MemAvailable/ && $$2 > 8e6' /proc/meminfo | \
  grep -q . && echo /dev/shm)
TEST := OMP_NUM_THREADS=1 $(if $(TMPDIR),TMPDIR='$(TMPDIR)') $(BIN)/pytest

# A test process a core, so none may take several: threads that wait for each other on shared cores cost the most.
# One more than cores, since some tests wait for what others do on their core: physical ones, as with `auto`.
WORKERS = $(shell $(BIN)/python -c 'import os, psutil; print((psutil.cpu_count(logical=False) or os.cpu_count()) + 1)')
# A file stays in one process, which makes what its tests share once; the files with the slow ones come first.
test: lint
	$(TEST) --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder -o tmp_path_retention_policy=failed

# Kill -9 in every stage, several times, and before its writes; more than an hour on two cores.
kill-matrix: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -m kill_matrix --numprocesses auto --dist worksteal \
	  tests/robustness/test_kill_matrix.py tests/robustness/test_every_write.py

# Hundreds of rounds and thousands of cases of what make test does a few of; some minutes on two cores.
stress: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -m stress --numprocesses auto --dist worksteal --timeout 7200 \
	  tests/concurrency tests/config tests/store/test_artifacts_stage.py tests/security \
	  tests/tokenization/test_kernels_encode.py tests/unit/native

# Sweeps under each of Hydra's launchers, with jobs that are killed; some minutes on two cores.
launcher-tests: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -m 'launchers or not launchers' tests/robustness/test_launchers.py

# 16 runs at once, 100,000 metrics, into MLflow with PostgreSQL, killed in the middle; 8 and 4 at once into SQLite.
tracking-load: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -m load tests/tracking/test_sync_server.py tests/tracking/test_sync.py

# Every stage on several engines, and a Ray cluster of two nodes of which one is killed; some minutes on two cores.
cluster-tests: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest -m cluster tests/engine/test_ray.py tests/engine/test_ray_nodes.py

# Images, services and nodes under a Docker engine of the tests' own, for root on Debian; docs/docker.md.
docker-tests: $(READY)
	$(BIN)/pytest -m docker -s --durations 0 tests/docker

# The image for GPUs is built the same way: 30 GB, and several gigabytes from the package index.
docker-cuda-tests: $(READY)
	$(BIN)/pytest -m docker_cuda -s --durations 0 tests/docker

bench-training: $(READY)
	$(BIN)/python benchmarks/training.py

# Every step of the acceptance of a GPU at a tiny size, on the CPU; some minutes.
gpu-rehearsal: $(READY)
	$(BIN)/python benchmarks/gpu_acceptance.py --device cpu

# Wheels for a machine with a GPU, Python 3.12 and PyTorch, and no network; what to do with them: docs/benchmarks.md.
BUNDLE := build/gpu_bundle
gpu-bundle: $(READY)
	rm -rf $(BUNDLE)
	$(BIN)/pip download --quiet --no-deps --only-binary :all: --python-version 3.12 --implementation cp \
	  --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
	  --constraint constraints.txt --requirement benchmarks/acceptance/bundle.txt --dest $(BUNDLE)
	$(BIN)/pip wheel --quiet --no-deps --constraint constraints.txt \
	  --requirement benchmarks/acceptance/bundle_sources.txt --wheel-dir $(BUNDLE)
	du -sh $(BUNDLE)
	test $$(du -sm $(BUNDLE) | cut -f1) -le 64

# The wheel and the sdist, into dist/.
package: $(READY)
	$(BIN)/python -m build --no-isolation

clean:
	rm -rf $(VENV) paribus_runs
