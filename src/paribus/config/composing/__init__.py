"""What Hydra makes of the overrides of one command, and does with its jobs.

`session` is Hydra for the length of a command. `usable` judges each override by itself: `override` reads it, `known`
says whether there is what it names. `sweep` makes the jobs of a command, `loader` reads each file once and `composer`
composes what jobs choose in common once; `plain` is what leaves, and `launch` hands jobs to Hydra's launchers.
"""
