"""Fine-tuning a trained model on the tasks of SCROLLS, and scoring what it answers.

The stage `finetuning_data` reads the files of all tasks before anything is trained (`data`), so that a malformed one is
named first. The stage `finetuning` (`run`) takes the last checkpoint of a training, tunes it on a task after the other,
each from the same weights (`training`), and lets it answer (`answers`). A task that is finished stays so in the working
directory; a killed one goes on from its last checkpoint with the same bytes at the end.

Out come rows as of the stage `evaluation`, and every answer, so that other scripts may judge it.
"""
