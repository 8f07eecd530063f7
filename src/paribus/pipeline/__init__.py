"""Stages, their graph, the plan and the runner."""
