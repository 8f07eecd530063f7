"""What `gpu_acceptance.py` measures, a step a process."""
